// RUN: hp-opt %s --hp-reserve-workspace --verify-diagnostics

// expected-error @below {{expected hp.workspace of 0 or more bytes but got -1}}
module attributes {hp.workspace = -1 : i64} {
  func.func @main() {
    return
  }
}

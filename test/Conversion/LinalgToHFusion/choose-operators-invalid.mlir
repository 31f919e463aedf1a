// RUN: hp-opt %s --hp-choose-operators=operators=some --verify-diagnostics

// expected-error @below {{expected operators=by-cost, always or never but got 'some'}}
module {}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a machine of shared cores adds. One core does 1e9 operations a second and packs 1e9 bytes a second for a product;
// memory gives one core 1e9 bytes a second and all together 2e9, the cache 1e10. A cut over two cores gains half of the
// second core, and takes 1 ms. The product has 2e9 operations on 12 MB, the sum of 10 M floats moves 120 MB, that of 100
// fits into the cache.
// RUN: split-file %s %t
// RUN: sed 's/DEVICES/1/' %t/program.mlir | hp-opt --test-print-costs -o /dev/null | FileCheck %s --check-prefix=ONE
// RUN: sed 's/DEVICES/2/' %t/program.mlir | hp-opt --test-print-costs -o /dev/null | FileCheck %s --check-prefix=TWO
// RUN: sed 's/DEVICES/4/' %t/program.mlir | hp-opt --test-print-costs -o /dev/null | FileCheck %s --check-prefix=FOUR

// A device alone has both cores: (2 s + 8 ms of packing) / 1.5 + 1 ms; 0.12 s / 1.5 + 1 ms; 0.12 us are not worth a cut.
// Nothing is exchanged.
// ONE: linalg.matmul: {{.*}} seconds=1.33967 bound=compute
// ONE-NEXT: arith.addf: {{.*}} seconds=0.081 bound=memory
// ONE-NEXT: arith.addf: {{.*}} seconds=1.2e-07 bound=memory

// Two have a core each, and the bus carries both: 2.008 s; 0.12 s. An all-reduce of 8 kB reads two parts and writes one:
// 1 us + 24 us.
// TWO: linalg.matmul: {{.*}} seconds=2.008 bound=compute
// TWO-NEXT: arith.addf: {{.*}} seconds=0.12 bound=memory
// TWO-NEXT: arith.addf: {{.*}} seconds=1.2e-07 bound=memory
// TWO-NEXT: hypershard.all_reduce: {{.*}} seconds=2.5e-05 bound=communication by memory

// Four take turns: twice as long. The all-reduce reads four parts: (1 us + 40 us) * 2, or in two steps (2 us + 26 us) * 2, and
// 5 us to wake up.
// FOUR: linalg.matmul: {{.*}} seconds=4.016 bound=compute
// FOUR-NEXT: arith.addf: {{.*}} seconds=0.24 bound=memory
// FOUR-NEXT: arith.addf: {{.*}} seconds=2.4e-07 bound=memory
// FOUR-NEXT: hypershard.all_reduce: {{.*}} seconds=6.1e-05 bound=communication by memory

//--- program.mlir
module attributes {supernode.machine = #supernode.machine<"shared",
    groups = [<"cpu" = 8, memory = "local", launch = 0, vector = 1.0e12, packing = 1.0e9, cache = "llc",
               cores = <2, gain = 0.5, cut = 1.0e-3, wake = 5.0e-6>, rates = [f32 = 1.0e9]>],
    levels = [<"host" = 8, latency = 1.0e-6, bandwidth = 1.0e9, algorithms = [memory]>],
    tiers = [<"local" in "device", capacity = 1.0e12, bandwidth = 1.0e9, shared = ["bus"]>,
             <"llc" in "host", capacity = 8000, bandwidth = 1.0e10>],
    segments = [<"bus" in "host", bandwidth = 2.0e9>]>} {
hypershard.mesh @m = <["x"=DEVICES]>
func.func @main(%a: tensor<1000x1000xf32>, %b: tensor<1000x1000xf32>, %big: tensor<10000000xf32>, %small: tensor<100xf32>,
                %other: tensor<10000000xf32>, %part: tensor<2000xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1000x1000xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<1000x1000xf32>, tensor<1000x1000xf32>) outs(%f : tensor<1000x1000xf32>)
      -> tensor<1000x1000xf32>
  %1 = arith.addf %big, %other : tensor<10000000xf32>
  %2 = arith.addf %small, %small : tensor<100xf32>
  %3 = hypershard.all_reduce %part over @m {"x"} <sum> : tensor<2000xf32> -> tensor<2000xf32>
  return
}
}

// Activations are named as reports name them.
// RUN: hp-opt %s --hp-fold-epilogues=activations=tanh --verify-diagnostics

// expected-error @below {{expected an activation of relu, gelu, gelu_tanh or silu but got 'tanh'}}
module {}

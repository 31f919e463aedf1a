# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models in: from a PyTorch module to linalg on tensors.

- ``hyperparallel.frontend.torch.import_model``     a module and example inputs in, an ``ImportedModel`` out
- ``hyperparallel.frontend.artifact.ImportedModel`` the program with its arguments and weights; ``save`` and ``load``
- ``hyperparallel.frontend.model_file``             the contract of model files, such as those in ``examples/``

Importing this package loads neither torch nor MLIR.
"""

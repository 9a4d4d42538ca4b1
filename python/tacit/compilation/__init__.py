"""Compiler from models to programs for secure multi-party computation.

A compiled model consists of a program, which all parties agree on before anything is shared, and of
the weights, which stay with their owner.

``compiler`` imports a model (``importers/``), improves it by ``passes/`` over a ``graph``, and
makes a ``program`` in its file ``format`` and ``weights``. ``execute`` runs the program on the
operators of secret tensors. The design follows CrypTFlow (Kumar et al., "CrypTFlow: Secure
TensorFlow Inference", IEEE S&P 2020), section III, Athos."""

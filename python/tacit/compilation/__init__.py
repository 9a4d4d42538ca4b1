"""Compiled models: a program that all parties agree on before anything is shared, and the weights
of its owner.

``compiler`` goes from a model (``importers/``) by ``passes/`` on a ``graph`` to a ``program`` in
its file ``format`` and to ``weights``; ``execute`` runs it on the operators that secret tensors
have. After CrypTFlow (Kumar et al., "CrypTFlow: Secure TensorFlow Inference", IEEE S&P 2020),
section III, Athos."""

"""Speed and memory of garden beside its peers, KerasHub and transformers, in one run: `python -m benchmarks`.

Absolute times say much about the machine and little about the code, so every figure is taken beside its peers' and
reported as a ratio. A worker process measures one job on one backend; the parent imports none of the libraries.
"""

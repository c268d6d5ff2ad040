"""What Remit costs, measured against a floor or a peer in the same run, on the same machine.

`python -m benchmarks [NAME…] [--quick]`. Nothing is asserted and nothing is kept.
"""

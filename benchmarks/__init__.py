"""Speed and memory of the zoo's optimizers beside torch's and its peers'; `python -m benchmarks --help`."""

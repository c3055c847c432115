# Run a program as an agent: one line of JSON in, lines of JSON out (examples/process/plain.py).
# From the root of the repository.
weir config check examples/process/weir.yaml
weir run -c examples/process/weir.yaml --agent plain "add 1 2 3"

"""Speed and memory, measured beside other readers on captures made here. Not timed in the test suite."""

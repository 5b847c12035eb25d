"""Agreement: conchart's tables beside tshark's answers on the same captures, fact by fact.

python -m tests.agreement CAPTURE...
"""

"""The vocabulary of every output: names, colours and letters of phases and stalls, numbers as text, safe text.

In: values. Out: text. Nothing here knows a table.
"""

"""Findings: the rules in ``rules/``, the evidence that they read, and what each finding costs users.

In: tables, rules, thresholds. Out: the tables ``findings`` and ``findings_on``.
"""

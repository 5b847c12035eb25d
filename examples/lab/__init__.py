"""What the laboratories share: hosts in network namespaces, cables between them, programs on them, tcpdump beside them.

A lesson's ``make-captures`` puts ``examples`` on its path and imports from here. Needs root, iproute2 and Linux.
"""

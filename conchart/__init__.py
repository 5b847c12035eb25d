"""Where did the time go in a packet capture."""

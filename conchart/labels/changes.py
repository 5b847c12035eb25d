"""The changes at a server that ``conchart whatif`` predicts, by the names of its options. Rules name them, too."""

CHANGES = ("keepalive", "resume", "tls13", "0rtt", "nodelay", "tls-off")

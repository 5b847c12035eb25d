#!/bin/sh
# A helper of Squid that takes 0.3 seconds to allow what it is asked about.
while read -r _; do
    sleep 0.3
    echo OK
done

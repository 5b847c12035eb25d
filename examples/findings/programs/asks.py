"""A client that asks one thing after the other on one connection.

    python3 asks.py HOST PORT STEP…

/TARGET    GET it, and read all of the response
rest-MS    do nothing for so many milliseconds
"""

import http.client
import sys
import time

connection = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=30)
for step in sys.argv[3:]:
    if step.startswith("rest-"):
        time.sleep(int(step.removeprefix("rest-")) / 1000)
        continue
    connection.request("GET", step, headers={"User-Agent": "asks"})
    connection.getresponse().read()
connection.close()

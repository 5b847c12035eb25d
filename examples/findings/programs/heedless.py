"""A client that asks on the connection that it has, and only once that failed on a new one, as xmlrpc.client does.

python3 heedless.py HOST PAUSE_SECONDS...
"""

import http.client
import sys
import time

host, *pauses = sys.argv[1:]
connection = http.client.HTTPConnection(host)
for number, pause in enumerate(["0", *pauses]):
    time.sleep(float(pause))
    for _attempt in range(2):
        try:
            connection.request("GET", f"/{number}")
            connection.getresponse().read()
            break
        except (http.client.RemoteDisconnected, ConnectionError):
            connection.close()  # the next request opens another one
connection.close()

"""A client that asks once over TLS of one version, whoever the server is.

python3 asks_tls.py HOST VERSION    TLSv1, TLSv1_1, TLSv1_2 or TLSv1_3, as Python names them
"""

import socket
import ssl
import sys
import warnings

warnings.simplefilter("ignore")  # Python, too, says that it is out of use
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
context.set_ciphers("DEFAULT@SECLEVEL=0")  # SHA-1 signs in TLS 1.1
context.minimum_version = context.maximum_version = ssl.TLSVersion[sys.argv[2]]
with (
    socket.create_connection((sys.argv[1], 443), 20) as plain,
    context.wrap_socket(plain, server_hostname=sys.argv[1]) as sealed,
):
    sealed.sendall(f"GET / HTTP/1.1\r\nHost: {sys.argv[1]}\r\nUser-Agent: asks\r\nConnection: close\r\n\r\n".encode())
    while sealed.recv(65_536):
        pass

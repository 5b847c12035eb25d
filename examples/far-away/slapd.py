"""An address book of 150 people in six towns, and slapd, which answers questions about it.

A town is named after how many people live there. In: a host of the lab and its keys. Out: slapd, listening in clear and
over TLS, with its configuration and its database in the lab's folder: the machine's own slapd is not touched.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from lab.network import Host, Network

SUFFIX = "dc=shop,dc=example"
PEOPLE = f"ou=people,{SUFFIX}"
TOWNS = {"Nobody": 0, "Ten": 10, "Twenty": 20, "Thirty": 30, "Forty": 40, "Fifty": 50}
PORT, TLS_PORT = 389, 636

FIRST_NAMES = ("Anna", "Bo", "Carla", "David", "Emma", "Finn", "Greta", "Hans", "Ida", "Jan")
LAST_NAMES = ("Alm", "Berg", "Dahl", "Falk", "Holm", "Lind", "Moss", "Nord", "Ros", "Vik")
SCHEMAS = ("/etc/ldap/schema", "/etc/openldap/schema")
MODULES = ("/usr/lib/ldap", "/usr/lib64/openldap", "/usr/lib/openldap")


def entries() -> str:
    """Write the address book as LDIF (RFC 2849)."""
    root = f"dn: {SUFFIX}\nobjectClass: dcObject\nobjectClass: organization\ndc: shop\no: Shop\n"
    book = [root, f"dn: {PEOPLE}\nobjectClass: organizationalUnit\nou: people\n"]
    for town, inhabitants in TOWNS.items():
        for number in range(inhabitants):
            first, last = FIRST_NAMES[number % 10], LAST_NAMES[number // 10]
            book.append(f"""\
dn: cn={first} {last} of {town},{PEOPLE}
objectClass: inetOrgPerson
cn: {first} {last} of {town}
givenName: {first}
sn: {last}
l: {town}
title: Customer
mail: {first.lower()}.{last.lower()}@{town.lower()}.example
telephoneNumber: +1 555 01{number:02}
""")
    return "\n".join(book)


def start_slapd(network: Network, host: Host, keys: Path) -> None:
    """Fill a database of its own and start slapd with it, at both ports of all addresses of ``host``."""
    home = network.folder / "slapd"
    database = home / "database"
    database.mkdir(parents=True)
    schema, modules = _find(SCHEMAS, "core.schema"), _find(MODULES, "back_mdb.so")
    (home / "slapd.conf").write_text(f"""\
include {schema}/core.schema
include {schema}/cosine.schema
include {schema}/inetorgperson.schema
modulepath {modules}
moduleload back_mdb
pidfile {home}/slapd.pid
TLSCACertificateFile {keys}/authority.crt
TLSCertificateFile {keys}/server.crt
TLSCertificateKeyFile {keys}/server.key
database mdb
directory {database}
suffix {SUFFIX}
index objectClass,l eq
""")
    (home / "people.ldif").write_text(entries())
    add = ["slapadd", "-q", "-f", home / "slapd.conf", "-l", home / "people.ldif"]
    subprocess.run(add, check=True, stdout=subprocess.DEVNULL)
    urls = f"ldap://:{PORT} ldaps://:{TLS_PORT}"
    network.start_server(host, TLS_PORT, ["slapd", "-d", "0", "-f", home / "slapd.conf", "-h", urls])


def _find(folders: tuple[str, ...], name: str) -> str:
    for folder in folders:
        if Path(folder, name).exists():
            return folder
    sys.exit(f"make-captures: {name} is in none of {', '.join(folders)}; please install slapd")

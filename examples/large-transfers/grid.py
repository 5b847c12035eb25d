"""What is measured: who fetches or sends, and with which protection.

A cell is one client, one direction and one protection. ``name`` is what tables and ``results.json`` call it.
"""

from __future__ import annotations

from dataclasses import dataclass

NO_AES_OPENSSL = {"OPENSSL_ia32cap": "~0x200000200000000"}
"""OpenSSL takes the processor for one without AES-NI (bit 57) and PCLMULQDQ (bit 33): the study's Athlon."""
NO_AES_GNUTLS = {"GNUTLS_CPUID_OVERRIDE": "0x1", "NETTLE_FAT_OVERRIDE": "vendor:amd"}
"""GnuTLS, and nettle, which computes for it, use none of their code for particular processors."""


@dataclass(frozen=True, kw_only=True)
class Protection:
    """One way to protect a transfer, or not to."""

    openssl: tuple[str, ...] = ()
    """curl's options."""
    gnutls: str = "NORMAL"
    """wget's ciphers: GnuTLS's priorities."""
    cipher: str | None = None
    """What nginx's log must say: OpenSSL's name; None without TLS."""
    no_aes: bool = False
    """Neither end uses the processor's instructions for AES."""
    path: str = ""
    only_down: bool = False
    ktls: bool = False
    """The server's kernel encrypts."""


def tls13(suite: str, gnutls: str, **more: bool) -> Protection:
    """TLS 1.3 with one cipher suite."""
    return Protection(
        openssl=("--tlsv1.3", "--tls13-ciphers", suite), cipher=suite,
        gnutls=f"NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+{gnutls}", **more,
    )  # fmt: skip


def tls12(cipher: str, gnutls: str) -> Protection:
    """TLS 1.2 with one cipher suite."""
    return Protection(
        openssl=("--tls-max", "1.2", "--ciphers", f"{cipher}:@SECLEVEL=0"), cipher=cipher,
        gnutls=f"NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:{gnutls}",
    )  # fmt: skip


PROTECTIONS = {
    "no TLS": Protection(),
    "no TLS, no sendfile": Protection(path="copied/", only_down=True),
    "TLS 1.2 NULL-SHA": tls12("ECDHE-RSA-NULL-SHA", "+NULL:-MAC-ALL:+SHA1"),
    "TLS 1.2 AES128-SHA": tls12("ECDHE-RSA-AES128-SHA", "+AES-128-CBC:-MAC-ALL:+SHA1"),
    "TLS 1.2 AES256-GCM": tls12("ECDHE-RSA-AES256-GCM-SHA384", "+AES-256-GCM"),
    "TLS 1.3 AES128-GCM": tls13("TLS_AES_128_GCM_SHA256", "AES-128-GCM"),
    "TLS 1.3 AES256-GCM": tls13("TLS_AES_256_GCM_SHA384", "AES-256-GCM"),
    "TLS 1.3 AES256-GCM, kTLS": tls13("TLS_AES_256_GCM_SHA384", "AES-256-GCM", ktls=True, only_down=True),
    "TLS 1.3 ChaCha20-Poly1305": tls13("TLS_CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
    "TLS 1.3 AES256-GCM, no AES instructions": tls13("TLS_AES_256_GCM_SHA384", "AES-256-GCM", no_aes=True),
}
"""In the order of the tables."""

QUICK = ("no TLS", "TLS 1.2 AES128-SHA", "TLS 1.3 AES256-GCM")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One figure of the lesson."""

    client: str
    direction: str
    name: str

    @property
    def protection(self) -> Protection:
        """How it is protected."""
        return PROTECTIONS[self.name]


def cells(*, quick: bool, ktls: bool) -> list[Cell]:
    """List the cells: wget down, curl down, curl up, as the study has them."""
    wanted = QUICK if quick else tuple(PROTECTIONS)
    return [
        Cell(client=client, direction=direction, name=name)
        for client, direction in (("wget", "down"), ("curl", "down"), ("curl", "up"))
        for name in wanted
        if (protection := PROTECTIONS[name])
        and (direction == "down" or not protection.only_down)
        and (ktls or not protection.ktls)
    ]

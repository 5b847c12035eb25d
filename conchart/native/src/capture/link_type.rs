//! Link-layer types, as capture files number them (`LINKTYPE_*` of tcpdump.org).

use std::borrow::Cow;
use std::fmt;

/// What a frame starts with. Unknown values stay representable: a file may hold anything.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: address family in the byte order of the capturing machine.
    pub const NULL: Self = Self(0);
    pub const ETHERNET: Self = Self(1);
    pub const FDDI: Self = Self(10);
    pub const PPP: Self = Self(9);
    /// Raw IP as Linux's `DLT_RAW` numbers it; never assigned for files, but found in them.
    pub const RAW_LINUX: Self = Self(12);
    /// Raw IP as OpenBSD's `DLT_RAW` numbers it.
    pub const RAW_OPENBSD: Self = Self(14);
    pub const PPP_SERIAL: Self = Self(50);
    pub const RAW: Self = Self(101);
    /// Cisco HDLC.
    pub const C_HDLC: Self = Self(104);
    /// OpenBSD loopback: address family in network byte order.
    pub const LOOP: Self = Self(108);
    pub const LINUX_SLL: Self = Self(113);
    pub const IPV4: Self = Self(228);
    pub const IPV6: Self = Self(229);
    /// Linux netfilter log.
    pub const NFLOG: Self = Self(239);
    /// IP over InfiniBand.
    pub const IPOIB: Self = Self(242);
    pub const LINUX_SLL2: Self = Self(276);
    pub const TOKEN_RING: Self = Self(6);
    pub const ARCNET: Self = Self(7);
    pub const ATM_RFC1483_BSD: Self = Self(11);
    pub const PPP_ETHER: Self = Self(51);
    pub const ATM_RFC1483: Self = Self(100);
    pub const IEEE802_11: Self = Self(105);
    pub const FRELAY: Self = Self(107);
    /// OpenBSD's IPsec interface.
    pub const ENC: Self = Self(109);
    /// OpenBSD's packet filter log.
    pub const PFLOG: Self = Self(117);
    pub const PRISM: Self = Self(119);
    pub const IP_OVER_FC: Self = Self(122);
    pub const SUNATM: Self = Self(123);
    pub const IEEE802_11_RADIO: Self = Self(127);
    pub const ARCNET_LINUX: Self = Self(129);
    /// Anybody's own; Apple's tools wrote PKTAP with it.
    pub const USER2: Self = Self(149);
    pub const IEEE802_11_AVS: Self = Self(163);
    /// Per-packet information before a frame of another link type.
    pub const PPI: Self = Self(192);
    /// Endace's extensible record format.
    pub const ERF: Self = Self(197);
    pub const MPLS: Self = Self(219);
    /// Solaris' interface between zones.
    pub const IPNET: Self = Self(226);
    pub const NETANALYZER: Self = Self(240);
    /// macOS' `pktap` interfaces: a frame of another link type follows.
    pub const PKTAP: Self = Self(258);
    pub const MPACKET: Self = Self(274);
    /// Switch tags, of Broadcom and Marvell.
    pub const DSA_BRCM: Self = Self(281);
    pub const DSA_BRCM_PREPEND: Self = Self(282);
    pub const DSA: Self = Self(284);
    pub const EDSA: Self = Self(285);

    /// libpcap's name without `DLT_`, e.g. `EN10MB`; `DLT 147` where it has none that fits here.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        let name = match self.0 {
            0 => "NULL",
            1 => "EN10MB",
            6 => "IEEE802",
            7 => "ARCNET",
            8 => "SLIP",
            9 => "PPP",
            10 => "FDDI",
            11 | 100 => "ATM_RFC1483",
            12 | 14 | 101 => "RAW",
            19 | 106 => "ATM_CLIP",
            50 => "PPP_SERIAL",
            51 => "PPP_ETHER",
            104 => "C_HDLC",
            105 => "IEEE802_11",
            107 => "FRELAY",
            108 => "LOOP",
            109 => "ENC",
            113 => "LINUX_SLL",
            114 => "LTALK",
            117 => "PFLOG",
            119 => "PRISM_HEADER",
            122 => "IP_OVER_FC",
            123 => "SUNATM",
            127 => "IEEE802_11_RADIO",
            129 => "ARCNET_LINUX",
            138 => "APPLE_IP_OVER_IEEE1394",
            140 => "MTP2",
            141 => "MTP3",
            143 => "DOCSIS",
            144 => "LINUX_IRDA",
            149 => "USER2",
            163 => "IEEE802_11_RADIO_AVS",
            166 => "PPP_PPPD",
            182 => "MFR",
            187 => "BLUETOOTH_HCI_H4",
            189 => "USB_LINUX",
            192 => "PPI",
            195 => "IEEE802_15_4",
            197 => "ERF",
            201 => "BLUETOOTH_HCI_H4_WITH_PHDR",
            219 => "MPLS",
            220 => "USB_LINUX_MMAPPED",
            224 => "FC_2",
            226 => "IPNET",
            227 => "CAN_SOCKETCAN",
            228 => "IPV4",
            229 => "IPV6",
            230 => "IEEE802_15_4_NOFCS",
            231 => "DBUS",
            239 => "NFLOG",
            240 => "NETANALYZER",
            242 => "IPOIB",
            247 => "INFINIBAND",
            248 => "SCTP",
            249 => "USBPCAP",
            251 => "BLUETOOTH_LE_LL",
            253 => "NETLINK",
            254 => "BLUETOOTH_LINUX_MONITOR",
            256 => "BLUETOOTH_LE_LL_WITH_PHDR",
            258 => "PKTAP",
            259 => "EPON",
            271 => "VSOCK",
            272 => "NORDIC_BLE",
            274 => "ETHERNET_MPACKET",
            276 => "LINUX_SLL2",
            280 => "VPP_DISPATCH",
            281 => "DSA_TAG_BRCM",
            282 => "DSA_TAG_BRCM_PREPEND",
            284 => "DSA_TAG_DSA",
            285 => "DSA_TAG_EDSA",
            other => return Cow::Owned(format!("DLT {other}")),
        };
        Cow::Borrowed(name)
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

"""TCP in tunnels, in fragments and on rare links, in real captures: every stream is found, and where tshark has it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.agreement import ours, stored
from tests.agreement.facts import TCP_FACTS, compare

CORPUS = os.environ.get("CONCHART_CORPUS")
CAPTURES = {
    "802.11 behind radiotap": "arkime__80211http.pcap",
    "ARCNET": "tcpdump__arcnet-rfc1201-arp-icmp-http.pcap",
    "Ethernet preamble": "zeek__ldap-modify-request.pcapng",
    "GRE, ERSPAN and VXLAN": "arkime__gre-erspan-vxlan.pcap",
    "VLAN, MPLS, GRE": "flowlab__gre-24_outer_vlan_mpls_mpls_gre_inner_ipv4_tcp_tls_client_hello.pcap",
    "GRE over UDP": "zeek__tunnels-gre-over-udp-4754.pcap",
    "ERSPAN, fragmented": "zeek__erspan.pcap",
    "IP in IP": "deepflow__common-ipip.pcap",
    "6in4": "ndpi__6in4tunnel.pcap",
    "Teredo": "snort3demo__codecs-teredo-teredo.pcap",
    "VXLAN, fragmented": "flowlab__vxlan-24_vxlan_outer_ipv4_fragmentation.pcap",
    "VXLAN": "pcapsql__fuzz_pcap_reader-vxlan_simple.pcap",
    "Geneve": "mercury__geneve.pcap",
    "Geneve, two networks with the same addresses": "flowlab__geneve-19_geneve_same_inner_tuple_different_vni.pcap",
    "GTP-U": "flowlab__gtpu-25_gtpu_outer_tagged_contexts.pcap",
    "GTP-U, fragmented": "zeek__tunnels-gtp-gtp1_gn_normal_incl_fragmentation.pcap",
    "L2TP": "proxydet__xl2tpd-xl2tpd-l2tp_http1-relay.pcap",
    "PPPoE": "arkime__pppoe.pcap",
    "MPLS": "zeek__mpls-in-vlan.pcap",
    "VN-Tag": "zeek__vntag_vlan_sandwich_clean.pcap",
    "802.1ah": "zeek__pbb.pcap",
    "IPv4 fragments": "pcapplusplus__ExamplesTest-expected_output-ipfragutil_bpf_filter.pcap",
    "IPv6 fragments over PPP": "suricataverify__defrag-bug-6887-defrag-ppp-ipv6-tcp-frag-ppp-ipv6-tcp.pcap",
    "a SYN in fragments": "suricataverify__defrag-bug-6887-defrag-ipv4-tcp-syn-frag-ip-tcp-syn.pcap",
    "IPv6 routing header": "flowtest__tools-ft-orchestration-tests-dev-generator-ipv6-routing-header.pcap",
    "data in the SYN": "suricataverify__tcp-fastopen-07-tcp_fastopen_segmentation.pcap",
    "SYN-ACKs with different numbers": "ndpi__tls_multiple_synack_different_seq.pcapng",
    "the same stream on two VLANs": "zeek__vlan-collisions.pcap",
}


@pytest.mark.skipif(CORPUS is None, reason="CONCHART_CORPUS names no folder of captures")
@pytest.mark.parametrize("carried", CAPTURES)
def test_every_stream_is_found_where_tshark_has_it(carried: str) -> None:
    assert CORPUS is not None
    capture = Path(CORPUS) / CAPTURES[carried]
    if not capture.exists():
        pytest.skip(f"the folder of captures has no {capture.name}")
    outcomes = list(compare(capture.name, stored.read(capture), ours.read(capture)))
    assert any(outcome.fact.startswith("stream") for outcome in outcomes)
    carried_facts = [one for one in outcomes if one.fact in TCP_FACTS or one.fact.startswith("stream")]
    assert [str(one) for one in carried_facts if not one.agrees] == []

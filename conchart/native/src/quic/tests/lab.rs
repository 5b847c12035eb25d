//! UDP datagrams of the captures under `captures/udp`, read with nothing of the reader's.

use crate::stream::Side;

pub(crate) struct Datagram {
    /// The server has the port that was asked for.
    pub from: Side,
    pub bytes: Vec<u8>,
}

/// The datagrams of each flow with that port, in order. The captures are pcap files of bare IPv4 packets.
pub(crate) fn flows(case: &str, port: u16) -> Vec<Vec<Datagram>> {
    let path = format!("{}/../../captures/udp/{case}/input.pcap", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read(path).unwrap();
    let (mut rest, mut flows) = (&file[24..], Vec::<(u16, Vec<Datagram>)>::new());
    while let Some((header, after)) = rest.split_first_chunk::<16>() {
        let len = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let (packet, after) = after.split_at(len);
        rest = after;
        let udp = &packet[usize::from(packet[0] & 0x0f) * 4..];
        let [source, destination] = [0, 2].map(|position| u16::from_be_bytes([udp[position], udp[position + 1]]));
        if packet[9] != 17 || ![source, destination].contains(&port) {
            continue;
        }
        let (from, client) = if source == port { (Side::Server, destination) } else { (Side::Client, source) };
        let datagram = Datagram { from, bytes: udp[8..].to_vec() };
        match flows.iter_mut().find(|(other, _)| *other == client) {
            Some((_, flow)) => flow.push(datagram),
            None => flows.push((client, vec![datagram])),
        }
    }
    flows.into_iter().map(|(_, flow)| flow).collect()
}

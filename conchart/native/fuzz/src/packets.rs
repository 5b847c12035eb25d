//! Writes the frames of TCP segments, and the pcapng blocks around them.

/// Bytes of an Ethernet frame with one segment.
pub struct Wire<'a> {
    /// Who sends it (bit 0), which connection it is of (bits 1 and 2).
    pub who: u8,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub id: u16,
    pub options: &'a [u8],
    pub payload: &'a [u8],
}

impl Wire<'_> {
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        let options = &self.options[..self.options.len().min(40)];
        let padding = options.len().next_multiple_of(4) - options.len();
        let header = 20 + options.len() + padding;
        let payload = &self.payload[..self.payload.len().min(60_000)];
        let total = (20 + header + payload.len()) as u16;
        let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let ports = [50_000 + u16::from(self.who >> 1 & 3), 80].map(u16::to_be_bytes);
        let (ends, [from, to]) =
            if self.who & 1 == 0 { ([client, server], ports) } else { ([server, client], [ports[1], ports[0]]) };
        [
            &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0][..],
            &total.to_be_bytes(),
            &self.id.to_be_bytes(),
            &[0x40, 0, 64, 6, 0, 0],
            &ends.concat(),
            &from,
            &to,
            &self.seq.to_be_bytes(),
            &self.ack.to_be_bytes(),
            &[(header as u8 / 4) << 4, self.flags],
            &self.window.to_be_bytes(),
            &[0; 4],
            options,
            &[0; 3][..padding],
            payload,
        ]
        .concat()
    }
}

/// A file in the making, in either byte order.
#[derive(Default)]
pub struct Blocks {
    pub bytes: Vec<u8>,
    pub is_big: bool,
}

impl Blocks {
    #[must_use]
    pub fn u16(&self, value: u16) -> [u8; 2] {
        if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    #[must_use]
    pub fn u32(&self, value: u32) -> [u8; 4] {
        if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    /// A block of that type.
    pub fn block(&mut self, kind: u32, body: &[u8]) {
        let padding = body.len().next_multiple_of(4) - body.len();
        let total = self.u32((12 + body.len() + padding) as u32);
        let kind = self.u32(kind);
        self.bytes.extend([&kind, &total, body, &[0; 3][..padding], &total].concat());
    }

    /// A section header: what follows is in this byte order.
    pub fn section(&mut self, is_big: bool) {
        self.is_big = is_big;
        let body = [&self.u32(0x1a2b_3c4d)[..], &self.u16(1), &self.u16(0), &[0xff; 8]].concat();
        self.block(0x0a0d_0d0a, &body);
    }

    pub fn interface(&mut self, link: u16, snap_length: u32, options: &[u8]) {
        let body = [&self.u16(link)[..], &[0, 0], &self.u32(snap_length), options].concat();
        self.block(1, &body);
    }

    #[must_use]
    pub fn option(&self, code: u16, value: &[u8]) -> Vec<u8> {
        let padding = value.len().next_multiple_of(4) - value.len();
        [&self.u16(code)[..], &self.u16(value.len() as u16), value, &[0; 3][..padding]].concat()
    }

    /// An enhanced packet block; `units` of its interface's clock.
    pub fn packet(&mut self, interface: u32, units: u64, frame: &[u8], wire: u32, options: &[u8]) {
        let padding = frame.len().next_multiple_of(4) - frame.len();
        let body = [
            &self.u32(interface)[..],
            &self.u32((units >> 32) as u32),
            &self.u32(units as u32),
            &self.u32(frame.len() as u32),
            &self.u32(wire),
            frame,
            &[0; 3][..padding],
            options,
        ];
        self.block(6, &body.concat());
    }
}

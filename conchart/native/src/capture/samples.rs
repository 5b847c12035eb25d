//! Writes small capture files for the tests: the formats' own definitions, read the other way.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use std::io::Write;

use super::Order;

/// A frame to be written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Shot {
    pub(crate) at: i64,
    pub(crate) data: Vec<u8>,
    pub(crate) original_len: u32,
}

/// Ten frames of growing length, whole microseconds apart.
pub(crate) fn ten_shots() -> Vec<Shot> {
    (0..10_u8)
        .map(|number| Shot {
            at: 1_700_000_000_000_000_000 + i64::from(number) * 1_000_001_000,
            data: vec![number; usize::from(number)],
            original_len: u32::from(number) + u32::from(number) % 2 * 1000,
        })
        .collect()
}

/// Appends numbers in one byte order.
pub(crate) struct Writer {
    pub(crate) order: Order,
    pub(crate) bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(order: Order) -> Self {
        Self { order, bytes: Vec::new() }
    }
    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.raw(&if self.order == Order::Big { value.to_be_bytes() } else { value.to_le_bytes() })
    }
    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.raw(&if self.order == Order::Big { value.to_be_bytes() } else { value.to_le_bytes() })
    }
    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.raw(&if self.order == Order::Big { value.to_be_bytes() } else { value.to_le_bytes() })
    }
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }
    fn pad(&mut self) -> &mut Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    pub(crate) fn pcap_header(&mut self, magic: u32, minor: u16, link: u32) -> &mut Self {
        self.u32(magic).u16(2).u16(minor).u32(0).u32(0).u32(65535).u32(link)
    }

    /// A pcapng block around `body`.
    pub(crate) fn block(&mut self, kind: u32, body: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::new(self.order);
        body(&mut inner);
        inner.pad();
        let len = inner.bytes.len() as u32 + 12;
        self.u32(kind).u32(len).raw(&inner.bytes).u32(len)
    }

    pub(crate) fn section(&mut self) -> &mut Self {
        self.block(0x0a0d_0d0a, |body| {
            body.u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX);
        })
    }

    pub(crate) fn interface(&mut self, link: u16, snap_length: u32, options: &[(u16, &[u8])]) -> &mut Self {
        self.block(1, |body| {
            body.u16(link).u16(0).u32(snap_length).options(options);
        })
    }

    pub(crate) fn enhanced(&mut self, interface: u32, timestamp: u64, data: &[u8], original: u32) -> &mut Self {
        self.enhanced_with(interface, timestamp, data, original, &[])
    }

    pub(crate) fn enhanced_with(
        &mut self,
        interface: u32,
        timestamp: u64,
        data: &[u8],
        original: u32,
        options: &[(u16, &[u8])],
    ) -> &mut Self {
        self.block(6, |body| {
            body.u32(interface).u32((timestamp >> 32) as u32).u32(timestamp as u32);
            body.u32(data.len() as u32).u32(original).raw(data).pad().options(options);
        })
    }

    pub(crate) fn options(&mut self, options: &[(u16, &[u8])]) -> &mut Self {
        for (code, value) in options {
            self.u16(*code).u16(value.len() as u16).raw(value).pad();
        }
        if !options.is_empty() {
            self.u32(0);
        }
        self
    }
}

/// Classic pcap; `unit` is 1000 for µs, 1 for ns.
pub(crate) fn pcap(order: Order, unit: i64, shots: &[Shot]) -> Vec<u8> {
    let mut file = Writer::new(order);
    file.pcap_header(if unit == 1 { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }, 4, 1);
    for shot in shots {
        file.u32((shot.at / 1_000_000_000) as u32).u32((shot.at % 1_000_000_000 / unit) as u32);
        file.u32(shot.data.len() as u32).u32(shot.original_len).raw(&shot.data);
    }
    file.bytes
}

/// pcapng with one Ethernet interface; `resolution` is the `if_tsresol` byte.
pub(crate) fn pcapng(order: Order, resolution: u8, shots: &[Shot]) -> Vec<u8> {
    let mut file = Writer::new(order);
    file.section().interface(1, 65535, &[(9, &[resolution])]);
    let power = u32::from(resolution & 0x7f);
    for shot in shots {
        let at = i128::from(shot.at);
        let timestamp = if resolution & 0x80 == 0 {
            (at * 10_i128.pow(power)).div_euclid(1_000_000_000)
        } else {
            // Rounded up, so that rounding down on reading gives the nanosecond back.
            -(-(at << power)).div_euclid(1_000_000_000)
        };
        file.enhanced(0, timestamp as u64, &shot.data, shot.original_len);
    }
    file.bytes
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

//! Bytes of TLS records and hellos, and a conversation that sends them.

use crate::stream::{BySide, Chunk, Gap, Moment, Side};
use crate::tls::{AppRecord, Handshake, Tls};

pub const MS: i64 = 1_000_000;

pub fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, 3, 3];
    bytes.extend((body.len() as u16).to_be_bytes());
    bytes.extend(body);
    bytes
}

/// An application-data record of `size` body bytes.
pub fn data(size: usize) -> Vec<u8> {
    record(23, &vec![0xda; size])
}

pub fn change_cipher_spec() -> Vec<u8> {
    record(20, &[1])
}

pub fn alert(level: u8, description: u8) -> Vec<u8> {
    record(21, &[level, description])
}

/// CCS and an encrypted Finished, as TLS 1.2 sends them.
pub fn finished12() -> Vec<u8> {
    [change_cipher_spec(), record(22, &[0xf1; 40])].concat()
}

pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32).to_be_bytes().to_vec();
    bytes[0] = kind;
    bytes.extend(body);
    bytes
}

fn vec8(body: &[u8]) -> Vec<u8> {
    [&[body.len() as u8], body].concat()
}

pub fn vec16(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u16).to_be_bytes(), body].concat()
}

fn words(codes: &[u16]) -> Vec<u8> {
    codes.iter().flat_map(|code| code.to_be_bytes()).collect()
}

/// A ClientHello in the making.
#[derive(Clone)]
pub struct Hello {
    pub version: u16,
    pub session_id: Vec<u8>,
    pub ciphers: Vec<u16>,
    pub extensions: Vec<(u16, Vec<u8>)>,
}

impl Hello {
    pub fn tls12() -> Self {
        Self { version: 0x0303, session_id: vec![], ciphers: vec![0xc02f, 0xc030], extensions: vec![] }
            .sni("example.org")
    }

    pub fn tls13() -> Self {
        let hello = Self { ciphers: vec![0x1301, 0x1302], session_id: vec![7; 32], ..Self::tls12() };
        hello.extension(43, vec8(&words(&[0x0304, 0x0303])))
    }

    pub fn extension(mut self, kind: u16, body: Vec<u8>) -> Self {
        self.extensions.push((kind, body));
        self
    }

    pub fn sni(self, name: &str) -> Self {
        self.extension(0, vec16(&[&[0][..], &vec16(name.as_bytes())].concat()))
    }

    pub fn alpn(self, protocol: &str) -> Self {
        self.extension(16, vec16(&vec8(protocol.as_bytes())))
    }

    pub fn alpn_list(self, protocols: &[&str]) -> Self {
        let names: Vec<u8> = protocols.iter().flat_map(|name| vec8(name.as_bytes())).collect();
        self.extension(16, vec16(&names))
    }

    pub fn codes(self, kind: u16, codes: &[u16]) -> Self {
        self.extension(kind, vec16(&words(codes)))
    }

    pub fn point_formats(self, formats: &[u8]) -> Self {
        self.extension(11, vec8(formats))
    }

    pub fn message(&self) -> Vec<u8> {
        let extensions: Vec<u8> = self
            .extensions
            .iter()
            .flat_map(|(kind, body)| [kind.to_be_bytes().to_vec(), vec16(body)].concat())
            .collect();
        let mut body = self.version.to_be_bytes().to_vec();
        body.extend([0x11; 32]);
        body.extend(vec8(&self.session_id));
        body.extend(vec16(&words(&self.ciphers)));
        body.extend(vec8(&[0]));
        if !extensions.is_empty() {
            body.extend(vec16(&extensions));
        }
        message(1, &body)
    }

    pub fn record(&self) -> Vec<u8> {
        record(22, &self.message())
    }
}

pub fn server_hello(version: u16, cipher: u16, session_id: &[u8], extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
    server_hello_with([0x22; 32], version, cipher, session_id, extensions)
}

fn server_hello_with(
    random: [u8; 32],
    version: u16,
    cipher: u16,
    session_id: &[u8],
    extensions: &[(u16, Vec<u8>)],
) -> Vec<u8> {
    let extensions: Vec<u8> =
        extensions.iter().flat_map(|(kind, body)| [kind.to_be_bytes().to_vec(), vec16(body)].concat()).collect();
    let mut body = version.to_be_bytes().to_vec();
    body.extend(random);
    body.extend(vec8(session_id));
    body.extend(cipher.to_be_bytes());
    body.push(0);
    body.extend(vec16(&extensions));
    message(2, &body)
}

fn extensions13(group: u16) -> Vec<(u16, Vec<u8>)> {
    vec![(43, vec![3, 4]), (51, [words(&[group]), vec16(&[9; 32])].concat())]
}

/// A ServerHello record of TLS 1.3 that echoes the session id, as all do.
pub fn server_hello13(cipher: u16, psk: bool) -> Vec<u8> {
    let mut extensions = extensions13(29);
    if psk {
        extensions.push((41, vec![0, 0]));
    }
    record(22, &server_hello(0x0303, cipher, &[7; 32], &extensions))
}

pub fn hello_retry_request() -> Vec<u8> {
    let random = [
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2,
        0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
    ];
    record(22, &server_hello_with(random, 0x0303, 0x1301, &[7; 32], &[(43, vec![3, 4]), (51, vec![0, 24])]))
}

/// A Certificate message of TLS 1.2 with certificates of these sizes.
pub fn certificate(sizes: &[usize]) -> Vec<u8> {
    let vec24 = |body: &[u8]| [&(body.len() as u32).to_be_bytes()[1..], body].concat();
    let list: Vec<u8> = sizes.iter().flat_map(|&size| vec24(&vec![0x30; size])).collect();
    message(11, &vec24(&list))
}

/// ServerKeyExchange with a named curve.
pub fn key_exchange(group: u16) -> Vec<u8> {
    message(12, &[&[3][..], &words(&[group]), &vec8(&[4; 65]), &[4, 1], &vec16(&[5; 64])].concat())
}

/// A conversation: every `send` is one packet, a millisecond after the one before.
pub struct Talk {
    pub tls: Tls,
    pub sent: BySide<u64>,
    pub frame: u64,
    /// Deliver packets in chunks of this many bytes.
    pub chop: usize,
}

impl Talk {
    pub fn new() -> Self {
        Self::over(Tls::new(None))
    }

    pub fn over(tls: Tls) -> Self {
        Self { tls, sent: BySide::default(), frame: 0, chop: usize::MAX }
    }

    pub fn now(&self) -> Moment {
        at(self.frame)
    }

    pub fn client(&mut self, bytes: &[u8]) -> Moment {
        self.send(Side::Client, bytes)
    }

    pub fn server(&mut self, bytes: &[u8]) -> Moment {
        self.send(Side::Server, bytes)
    }

    /// Nobody says anything for so many milliseconds.
    pub fn wait(&mut self, ms: u64) {
        self.frame += ms;
    }

    /// A packet whose sender had seen everything the peer sent.
    pub fn send(&mut self, from: Side, bytes: &[u8]) -> Moment {
        self.send_having_seen(from, bytes, self.sent[from.peer()])
    }

    pub fn send_having_seen(&mut self, from: Side, bytes: &[u8], acked: u64) -> Moment {
        self.frame += 1;
        for part in bytes.chunks(self.chop.min(bytes.len()).max(1)) {
            let chunk = Chunk { bytes: part, cut: 0, offset: self.sent[from], acked, seen: self.now() };
            self.sent[from] += part.len() as u64;
            self.tls.data(from, chunk);
        }
        self.now()
    }

    /// A packet of which the capture kept `captured` bytes.
    pub fn send_cut(&mut self, from: Side, bytes: &[u8], captured: usize) -> Moment {
        self.frame += 1;
        let cut = (bytes.len() - captured) as u32;
        let acked = self.sent[from.peer()];
        self.tls.data(from, Chunk { bytes: &bytes[..captured], cut, offset: self.sent[from], acked, seen: self.now() });
        self.sent[from] += bytes.len() as u64;
        self.now()
    }

    pub fn gap(&mut self, from: Side, len: u64) {
        self.frame += 1;
        self.tls.gap(from, Gap::new(self.sent[from], len, self.now()));
        self.sent[from] += len;
    }

    pub fn fin(&mut self, from: Side) {
        self.frame += 1;
        self.tls.fin(from, self.now());
    }

    pub fn records(&mut self) -> Vec<AppRecord> {
        std::iter::from_fn(|| self.tls.next_record()).collect()
    }

    /// (sender, size) of the records released so far.
    pub fn sizes(&mut self) -> Vec<(Side, u64)> {
        self.records().iter().map(|record| (record.from, record.bytes)).collect()
    }

    pub fn handshake(&mut self) -> Handshake {
        *self.tls.next_handshake().unwrap()
    }

    /// Ends the connection and returns its only handshake.
    pub fn end(&mut self) -> Handshake {
        self.tls.finish();
        let handshake = self.handshake();
        assert!(self.tls.next_handshake().is_none());
        handshake
    }

    /// A whole handshake of TLS 1.2 in its four flights.
    pub fn full12(mut self) -> Self {
        self.client(&Hello::tls12().record());
        self.server(&server_flight12());
        self.client(&[record(22, &message(16, &[4; 66])), finished12()].concat());
        self.server(&finished12());
        self
    }

    /// TLS 1.3 up to and including the server's flight.
    pub fn hellos13(self, hello: &Hello, psk: bool) -> Self {
        self.hellos13_agreeing(hello, psk, 0)
    }

    /// The same, where EncryptedExtensions has so many bytes of extensions.
    pub fn hellos13_agreeing(mut self, hello: &Hello, psk: bool, extensions: usize) -> Self {
        self.client(&hello.record());
        let flight = [data(23 + extensions), server_flight13(psk).split_off(data(23).len())].concat();
        self.server(&[server_hello13(0x1301, psk), change_cipher_spec(), flight].concat());
        self
    }
}

pub fn at(frame: u64) -> Moment {
    Moment::new(frame as i64 * MS, frame, Side::Client)
}

/// ServerHello, Certificate, ServerKeyExchange, ServerHelloDone.
pub fn server_flight12() -> Vec<u8> {
    let hello = server_hello(0x0303, 0xc02f, &[], &[(16, vec16(&vec8(b"http/1.1")))]);
    [
        record(22, &hello),
        record(22, &certificate(&[900, 1100])),
        record(22, &key_exchange(29)),
        record(22, &message(14, &[])),
    ]
    .concat()
}

/// EncryptedExtensions, (Certificate, CertificateVerify,) Finished of a SHA-256 suite.
pub fn server_flight13(psk: bool) -> Vec<u8> {
    if psk { [data(23), data(53)].concat() } else { [data(23), data(836), data(281), data(53)].concat() }
}

pub const FINISHED13: usize = 53;

/// The client's Finished of a SHA-256 suite, after the dummy CCS.
pub fn finished13() -> Vec<u8> {
    [change_cipher_spec(), data(FINISHED13)].concat()
}

//! An HTTP/1.1 client on rustls: rustls-client ADDRESS NAME AUTHORITY.crt VERSION HOW REQUESTS...
//!
//! VERSION is 1.2 or 1.3. HOW is `full` (one connection), `resumed` (two, the second with a ticket) or `early` (the
//! second sends its first request as 0-RTT data). A request is written METHOD:TARGET:BODY_BYTES and is sent once the
//! response to the one before has been read. Secrets go to the file SSLKEYLOGFILE names.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{version, ClientConfig, ClientConnection, KeyLogFile, RootCertStore, StreamOwned};

type Fallible<T> = Result<T, Box<dyn Error>>;

fn main() -> Fallible<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, name, authority, tls, how, requests @ ..] = words.as_slice() else {
        return Err("usage: rustls-client ADDRESS NAME AUTHORITY.crt VERSION HOW REQUESTS...".into());
    };
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority)?)?;
    let versions = if tls == "1.2" { &[&version::TLS12] } else { &[&version::TLS13] };
    let mut config = ClientConfig::builder_with_protocol_versions(versions)
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.key_log = Arc::new(KeyLogFile::new());
    config.enable_early_data = how == "early";
    let config = Arc::new(config);
    for number in 0..if how == "full" { 1 } else { 2 } {
        let server = ServerName::try_from(name.clone())?;
        let mut connection = ClientConnection::new(config.clone(), server)?;
        let mut rest = requests;
        if let (1, [first, others @ ..]) = (number, requests) {
            if let Some(mut early) = connection.early_data() {
                early.write_all(&request(first, name)?)?;
                rest = others;
            }
        }
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let mut server = BufReader::new(StreamOwned::new(connection, socket));
        if rest.len() < requests.len() {
            response(&mut server)?;
        }
        for line in rest {
            server.get_mut().write_all(&request(line, name)?)?;
            response(&mut server)?;
        }
        server.get_mut().conn.send_close_notify();
        server.get_mut().flush()?;
    }
    Ok(())
}

/// METHOD:TARGET:BODY_BYTES as HTTP/1.1 writes it.
fn request(line: &str, host: &str) -> Fallible<Vec<u8>> {
    let [method, target, bytes] = line.split(':').collect::<Vec<_>>()[..] else {
        return Err(format!("{line}: not METHOD:TARGET:BODY_BYTES").into());
    };
    let length = if bytes == "0" { String::new() } else { format!("Content-Length: {bytes}\r\n") };
    let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{length}\r\n");
    Ok([head.into_bytes(), vec![b'x'; bytes.parse()?]].concat())
}

/// Reads one response, whose length its head gives: 204 and 304 have no body.
fn response(server: &mut impl BufRead) -> Fallible<()> {
    let (mut length, mut line) = (0, String::new());
    while line != "\r\n" {
        line.clear();
        if server.read_line(&mut line)? == 0 {
            return Err("the server closed before it answered".into());
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    std::io::copy(&mut server.take(length), &mut std::io::sink())?;
    Ok(())
}

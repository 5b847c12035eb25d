//! What a connection's server was called: the name that the client asked for. Nothing is ever looked up.
//!
//! In: the handshakes and exchanges of a connection, in their order. Out: the name as it was sent: that of the first
//! `ClientHello` that has one (RFC 6066 section 3), else the first Host that is no address.

/// The name, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct ServerName {
    name: Option<Box<str>>,
    /// It comes from a `ClientHello`: no request changes it.
    is_sni: bool,
}

impl ServerName {
    /// A handshake names the server.
    pub fn greeted(&mut self, sni: Option<&str>) {
        if let Some(sni) = sni.filter(|sni| !self.is_sni && !sni.is_empty()) {
            *self = Self { name: Some(sni.into()), is_sni: true };
        }
    }

    /// A request names the server. An address is no name, whosever it is: behind a proxy it is often that of the front.
    pub fn requested(&mut self, host: Option<&str>) {
        if self.name.is_none() {
            self.name = host.filter(|host| !host.is_empty() && !is_address(host)).map(Into::into);
        }
    }

    #[must_use]
    pub fn get(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// RFC 9110 section 7.2, RFC 3986 section 3.2.2; some write IPv6 without its brackets.
fn is_address(host: &str) -> bool {
    let of_ipv6 = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_port = |text: &str| text.is_empty() || text.strip_prefix(':').is_some_and(is_number);
    if let Some(bracketed) = host.strip_prefix('[') {
        return bracketed.split_once(']').is_some_and(|(ip, rest)| !ip.is_empty() && of_ipv6(ip) && is_port(rest));
    }
    let rest = host.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let (first, others) = host.split_once(':').unwrap_or_default();
    rest.len() < host.len() && is_port(rest) || others.contains(':') && !first.contains('.') && of_ipv6(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(snis: &[&str], hosts: &[&str]) -> Option<String> {
        let mut name = ServerName::default();
        hosts.iter().for_each(|&host| name.requested(Some(host)));
        snis.iter().for_each(|&sni| name.greeted(Some(sni)));
        name.get().map(str::to_owned)
    }

    #[test]
    fn the_first_sni_counts_before_the_first_host() {
        assert_eq!(name(&[], &["", "one.example:80", "other.example"]).as_deref(), Some("one.example:80"));
        assert_eq!(name(&["", "tls.example", "later.example"], &["one.example"]).as_deref(), Some("tls.example"));
        assert_eq!(name(&[""], &[]), None);
        let mut greeted = ServerName::default();
        greeted.greeted(Some("tls.example"));
        greeted.requested(Some("one.example"));
        greeted.requested(None);
        assert_eq!(greeted.get(), Some("tls.example"));
    }

    #[test]
    fn an_address_is_no_name() {
        for host in
            ["10.0.0.1", "10.0.0.1:80", "[::1]", "[fe80::1]:8443", "fe80::1", "::1", "::ffff:10.0.0.1", "1.2.3", "7"]
        {
            assert_eq!(name(&[], &[host]), None, "{host}");
        }
        for host in [
            "a.example",
            "1a.example",
            "face",
            "dead:80",
            "10.example",
            "10.0.0.1:",
            "10.0.0.1:http",
            "fe80:1",
            "1.2:3:4x",
            ":80",
            "[::1",
            "[]",
            "[x]",
        ] {
            assert_eq!(name(&[], &[host]).as_deref(), Some(host));
        }
    }
}

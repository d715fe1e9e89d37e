//! Hosts that a gauge may query.
//!
//! A server reads a gauge from its own place in the network, and any caller that may set a limit names the address.
//! Link-local addresses belong to the machine's own surroundings: cloud providers serve credentials there, without a
//! password, to any process inside; some do so at addresses of their own. So a gauge may not query them unless the
//! operator names the host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Gauge, GaugeAddress, GaugeSource};
use crate::refusal::Refusal;
use crate::sentences::LimitRefusal;

/// Hosts that a gauge may query although their addresses are guarded, as `--gauge-allow` names them: names, or
/// addresses without brackets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GaugeHosts(Vec<String>);

impl GaugeHosts {
    /// Allows these hosts, beside all that are neither link-local nor a cloud's metadata.
    pub fn allowing<H: Into<String>>(hosts: impl IntoIterator<Item = H>) -> Self {
        let bare = |host: String| unbracketed(&host).to_owned();
        GaugeHosts(hosts.into_iter().map(|host| bare(host.into())).collect())
    }

    /// True if a gauge may query this host, a name or an address, at the address that it resolves to.
    pub fn let_ask(&self, host: &str, at: IpAddr) -> bool {
        let host = unbracketed(host);
        !is_guarded(at) || self.0.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
    }

    /// Refuses a gauge whose address is literally a guarded one. A name resolves only when it is queried, and is
    /// checked again then. A number in a form that only a resolver understands, such as `0xa9fea9fe`, counts as a name.
    ///
    /// # Errors
    /// `invalid_field` at the member of the gauge that has the address.
    pub fn check(&self, gauge: &Gauge) -> Result<(), Refusal> {
        let (address, field) = match &gauge.source {
            GaugeSource::Count { url, .. } => (url, "url"),
            GaugeSource::Scrapyd { scrapyd, .. } => (scrapyd, "scrapyd"),
        };
        let host = host_of(address);
        match unbracketed(&host).parse() {
            Ok(at) if !self.let_ask(&host, at) => {
                Err(Refusal::from(LimitRefusal::GaugeLinkLocal).at(format!("/gauge/{field}")))
            }
            _ => Ok(()),
        }
    }
}

/// The host of an address, with the brackets of a numeric IPv6 one.
fn host_of(address: &GaugeAddress) -> String {
    let text = address.without_login();
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    match authority.rfind(':') {
        Some(colon) if !authority[colon..].contains(']') => authority[..colon].to_owned(),
        _ => authority.to_owned(),
    }
}

fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// IPv4 addresses outside the link-local range at which clouds serve the metadata of a machine: Alibaba, Azure, Oracle.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];
/// The same at an IPv6 address: AWS.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// 169.254.0.0/16, fe80::/10 and the addresses of metadata, also where an IPv4 address is written as an IPv6 one:
/// mapped, compatible, 6to4, or behind a prefix of a translator.
fn is_guarded(at: IpAddr) -> bool {
    match at.to_canonical() {
        IpAddr::V4(v4) => is_guarded_v4(v4),
        IpAddr::V6(v6) => {
            v6.is_unicast_link_local()
                || v6 == METADATA_V6
                || embedded(v6).into_iter().any(is_guarded_v4)
        }
    }
}

fn is_guarded_v4(at: Ipv4Addr) -> bool {
    at.is_link_local() || METADATA_V4.contains(&at)
}

/// The IPv4 addresses that `::a.b.c.d`, `64:ff9b::a.b.c.d`, `2002:ab:cd::` and `64:ff9b:1::/48` may mean. In the last
/// one the operator of the translator chooses the length of the prefix, so all positions of RFC 6052 count.
fn embedded(v6: Ipv6Addr) -> Vec<Ipv4Addr> {
    let octets = v6.octets();
    let at = |places: [usize; 4]| Ipv4Addr::from(places.map(|place| octets[place]));
    let last = [12, 13, 14, 15];
    match v6.segments() {
        [0, 0, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => vec![at(last)],
        [0x64, 0xff9b, 1, ..] => {
            vec![at([6, 7, 9, 10]), at([7, 9, 10, 11]), at([9, 10, 11, 12]), at(last)]
        }
        [0x2002, ..] => vec![at([2, 3, 4, 5])],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::gauge;

    #[test]
    fn link_local_hosts_are_asked_only_if_the_operator_allows_it() {
        let (none, some) =
            (GaugeHosts::default(), GaugeHosts::allowing(["[fe80::1]", "Meta.example"]));
        for (at, lets) in [
            ("169.254.169.254", false),
            ("169.254.0.1", false),
            ("::ffff:169.254.169.254", false),
            ("::169.254.169.254", false),
            ("64:ff9b::169.254.169.254", false),
            ("64:ff9b:1::169.254.169.254", false),
            ("64:ff9b:1:a9fe:a9:fe00::", false),
            ("64:ff9b:1:12a9:fe:a9fe::", false),
            ("64:ff9b:1:1234:a9:fea9:fe00:0", false),
            ("64:ff9b:1::10.0.0.1", true),
            ("2002:a9fe:a9fe::", false),
            ("2002:a9fe:a9fe::1:2", false),
            ("2002:a00:1::a9fe:a9fe", true),
            ("fd00:ec2::254", false),
            ("fd00:ec2::253", true),
            ("100.100.100.200", false),
            ("100.100.100.201", true),
            ("168.63.129.16", false),
            ("192.0.0.192", false),
            ("::ffff:168.63.129.16", false),
            ("2002:a83f:8110::", false),
            ("fe80::1", false),
            ("febf::1", false),
            ("fec0::1", true),
            ("127.0.0.1", true),
            ("10.0.0.1", true),
            ("::1", true),
            ("2001:db8::1", true),
        ] {
            let at: IpAddr = at.parse().unwrap();
            assert_eq!(none.let_ask("meta.example", at), lets, "{at}");
            assert!(some.let_ask("meta.example", at), "{at}");
            assert_eq!(some.let_ask("other.example", at), lets, "{at}");
        }
        assert!(some.let_ask("fe80::1", "fe80::1".parse().unwrap()));
    }

    #[test]
    fn a_gauge_of_a_link_local_address_is_refused_when_it_is_set() {
        for (text, pointer) in [
            (r#"{"url":"http://169.254.169.254/latest","count":["/n"]}"#, Some("/gauge/url")),
            (r#"{"url":"http://169.254.169.254","count":["/n"]}"#, Some("/gauge/url")),
            (r#"{"url":"http://me:x@[fe80::1]:80/","count":["/n"]}"#, Some("/gauge/url")),
            (r#"{"scrapyd":"http://[::ffff:169.254.1.1]:6800"}"#, Some("/gauge/scrapyd")),
            (r#"{"scrapyd":"http://[fd00:ec2::254]:6800"}"#, Some("/gauge/scrapyd")),
            (r#"{"scrapyd":"http://scrapyd.example:6800"}"#, None),
            (r#"{"scrapyd":"http://[::1]:6800?a=169.254.1.1"}"#, None),
        ] {
            let no = GaugeHosts::default().check(&gauge(text).unwrap()).err();
            assert_eq!(no.and_then(|no| no.pointer).as_deref(), pointer, "{text}");
        }
        let text = r#"{"url":"http://169.254.169.254/latest","count":["/n"]}"#;
        let allowing = GaugeHosts::allowing(["169.254.169.254"]);
        assert!(allowing.check(&gauge(text).unwrap()).is_ok());
    }
}

//! Classification of Redis errors: some concern one request, others the whole connection.

use tenure_core::redis_address::Endpoint;

/// True if an error concerns one request, and the same connection may serve all others: the user lacks a right, a key
/// has another type, a script ends with an error. All other codes concern the server: it is a replica by now, loads its
/// data, has the store on another node, or does not know a script. Those requests are sent again, on another
/// connection.
pub(crate) fn is_of_one_request(refusal: &str) -> bool {
    let code = refusal.split(' ').next();
    matches!(code, Some("ERR" | "NOPERM" | "WRONGTYPE"))
}

/// The node of a cluster that has the store, from `MOVED SLOT HOST:PORT`. Without a host it is the host that answered.
/// An IPv6 address has no brackets there.
pub(crate) fn moved_to(refusal: &str, by: &Endpoint) -> Option<Endpoint> {
    let place = refusal.strip_prefix("MOVED ")?.split(' ').nth(1)?;
    node_at(place, by)
}

/// The address of a node in the notation of a cluster.
pub(crate) fn node_at(place: &str, by: &Endpoint) -> Option<Endpoint> {
    let (host, port) = place.rsplit_once(':')?;
    let host = if host.is_empty() { &by.host } else { host };
    let port = port.parse().ok().filter(|port| *port > 0)?;
    Some(Endpoint { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_store_is_at_the_host_that_answered_if_none_is_named() {
        let by = Endpoint { host: "10.0.0.7".to_owned(), port: 6380 };
        for (refusal, place) in [
            ("MOVED 3999 10.0.0.9:6381", Some(("10.0.0.9", 6381))),
            ("MOVED 3999 :6381", Some(("10.0.0.7", 6381))),
            ("MOVED 3999 ::1:6381", Some(("::1", 6381))),
            ("MOVED 3999 node-2.example:6381", Some(("node-2.example", 6381))),
            ("MOVED 3999 :0", None),
            ("MOVED 3999 10.0.0.9", None),
            ("MOVED", None),
            ("ASK 3999 10.0.0.9:6381", None),
        ] {
            let place = place.map(|(host, port)| Endpoint { host: host.to_owned(), port });
            assert_eq!(moved_to(refusal, &by), place, "{refusal}");
        }
    }

    #[test]
    fn errors_about_the_server_are_not_about_one_request() {
        for refusal in ["ERR unknown command", "NOPERM no rights", "WRONGTYPE of a key"] {
            assert!(is_of_one_request(refusal), "{refusal}");
        }
        for refusal in [
            "READONLY it is a replica",
            "LOADING the data",
            "MOVED 1 :6381",
            "ASK 1 :6381",
            "CLUSTERDOWN",
            "TRYAGAIN later",
            "NOSCRIPT unknown",
            "NOAUTH first",
            "MISCONF no disk",
            "OOM no memory",
            "BUSY with a script",
            "MASTERDOWN no primary",
        ] {
            assert!(!is_of_one_request(refusal), "{refusal}");
        }
    }
}

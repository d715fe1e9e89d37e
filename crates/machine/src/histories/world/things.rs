//! The few names and values that histories use, chosen by number. It only makes values.

use tenure_core::gauge::{Gauge, GaugeAddress, GaugeSource, OnStale};
use tenure_core::job::Need;
use tenure_core::names::{FlowName, LimitName, PoolName, QueueName, ResourceId, Tag};
use tenure_core::secret::Json;
use tenure_core::settings::NewResource;
use tenure_core::time::Span;

pub(super) const LIMITS: [&str; 7] = ["a", "b", "s:x", "s:y", "s:*", "queue:q0", "lock:l"];

fn limit(name: &str, weight: u32) -> Need {
    Need::Limit { limit: LimitName::parse(name).unwrap(), weight, cost: 1 }
}

fn pool(tag: Option<&str>, id: Option<&str>, count: u32) -> Need {
    Need::Pool {
        pool: PoolName::parse("p").unwrap(),
        tag: tag.map(|tag| Tag::parse(tag).unwrap()),
        prefer: None,
        id: id.map(|id| ResourceId::parse(id).unwrap()),
        count,
    }
}

pub(super) fn gauge(how: u8) -> Gauge {
    let url = GaugeAddress::parse("http://host").unwrap();
    let source = match how & 1 {
        0 => GaugeSource::Count { url, count: vec!["/n".to_owned()] },
        _ => GaugeSource::Scrapyd { scrapyd: url, project: None },
    };
    let on_stale = if how & 2 > 0 { OnStale::Hold } else { OnStale::Keep };
    let lag = Span::from_ms(u64::from(how) * 20);
    Gauge { source, every: Span::from_ms(500), lag, stale: Span::from_s(5), on_stale }
}

pub(super) fn resource(n: u8, tags: u8, slots: u8) -> NewResource {
    let tags = [("t", 1), ("u", 2)].into_iter().filter(|(_, bit)| tags & bit > 0);
    NewResource {
        id: ResourceId::parse(&format!("r{}", n % 5)).unwrap(),
        data: Json::from(i64::from(n % 5)),
        tags: tags.map(|(tag, _)| Tag::parse(tag).unwrap()).collect(),
        slots: u32::from(slots % 2) + 1,
    }
}

pub(super) fn needs(n: u8) -> Vec<Need> {
    match n % 16 {
        0..=3 => Vec::new(),
        4 => vec![limit("a", 1)],
        5 => vec![limit("b", 1)],
        6 => vec![limit("b", 2)],
        7 => vec![limit("a", 1), limit("b", 1)],
        8 => vec![limit("s:x", 1)],
        9 => vec![limit("s:y", 1), limit("b", 1)],
        10 => vec![limit("a", 1), limit("s:x", 1)],
        11 => vec![pool(None, None, 1)],
        12 => vec![pool(Some("t"), None, 1)],
        13 => vec![limit("b", 1), pool(None, Some("r1"), 1)],
        14 => vec![limit("lock:l", 1)],
        _ => vec![limit("s:y", 1), pool(Some("u"), None, 2)],
    }
}

pub(super) fn queue(n: u8) -> QueueName {
    QueueName::parse(&format!("q{}", n % 3)).unwrap()
}

pub(super) fn flow_name(n: u8) -> FlowName {
    FlowName::parse(&format!("f{}", n % 2)).unwrap()
}

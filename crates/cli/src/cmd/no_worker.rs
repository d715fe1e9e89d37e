//! A queue that nobody asks for, and the names of queues that the user perhaps meant.

use tenure::Client;
use tenure_core::decode;
use tenure_core::names::QueueName;
use tenure_core::requests::{ListQueues, Page};
use tenure_core::settings::QueueView;

/// Names shown beside a queue that nobody asks for.
const NAMES_SHOWN: usize = 5;

/// Says that nobody asks for a queue, and which queues somebody does ask for: otherwise a job behind a typing error
/// would wait for ever. The push does not fail if this cannot be found out.
pub async fn tell(client: &Client, queue: &QueueName) {
    let page = Page { max: tenure_core::bounds::LIST_MAX, cursor: None };
    let queues = client.run(ListQueues { page }).await.ok().map(|listed| listed.items);
    crate::output::tell(&sentence(queue, queues.as_deref()));
}

/// `queues`: those that are there; `None`: they are not known, since the token may push and not look.
fn sentence(queue: &QueueName, queues: Option<&[QueueView]>) -> String {
    let head = format!("nobody has asked for queue '{queue}' in the last minute");
    let Some(queues) = queues else { return head };
    let busy = |view: &&QueueView| view.workers > 0 && view.name != *queue;
    let names: Vec<&str> = queues.iter().filter(busy).map(|view| view.name.as_str()).collect();
    match some_names(queue.as_str(), &names) {
        Some(names) => format!("{head}; queues with workers: {names}"),
        None => format!("{head}; no queue has workers"),
    }
}

/// A few names, the one that was perhaps meant first; `None` if there are none.
pub fn some_names(meant: &str, names: &[&str]) -> Option<String> {
    let nearest = decode::nearest(meant, names.iter().copied());
    let others = names.iter().copied().filter(|name| Some(*name) != nearest);
    let quoted: Vec<String> =
        nearest.into_iter().chain(others).take(NAMES_SHOWN).map(|n| format!("'{n}'")).collect();
    let more = if names.len() > NAMES_SHOWN { ", …" } else { "" };
    Some(quoted.join(", ") + more).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::settings::{QueueCounts, QueueSettings};

    fn view(name: &str, workers: u64) -> QueueView {
        QueueView {
            name: QueueName::parse(name).unwrap(),
            paused: false,
            paused_until: None,
            settings: QueueSettings::default(),
            counts: QueueCounts::default(),
            oldest_ready_at: None,
            workers,
            skipped: 0,
        }
    }

    #[test]
    fn a_queue_without_workers_is_named_beside_those_with_workers() {
        let queue = QueueName::parse("expmple").unwrap();
        let queues = [view("crawl", 1), view("example", 2), view("expmple", 0), view("idle", 0)];
        assert_eq!(
            sentence(&queue, Some(&queues)),
            "nobody has asked for queue 'expmple' in the last minute; queues with workers: \
             'example', 'crawl'"
        );
        assert_eq!(
            sentence(&queue, Some(&[])),
            "nobody has asked for queue 'expmple' in the last minute; no queue has workers"
        );
    }
}

//! Queues.

use std::collections::BTreeMap;

use tenure::core::job::Retry;
use tenure::core::names::Group;
use tenure::core::requests::*;
use tenure::core::settings::QueueSettings;
use tenure::{Later, Span};

use super::words::*;
use super::{Row, row};

pub(super) fn rows() -> Vec<Row> {
    use Reply as R;
    let settings = QueueSettings {
        needs: needs(),
        retry: None,
        timeout: Some(Span::from_s(300)),
        retain: None,
        max_waiting: Some(9),
        lost_delay: Some(Span::ZERO),
        shares: BTreeMap::from([(Group::parse("tenant-7").unwrap(), 3)]),
        show_payload: false,
    };
    let path = |tail: &str| format!("{QUEUE_PATH}{tail}");
    vec![
        row!(
            ListQueues { page: page() },
            "GET /v1/queues?max=7&cursor=a%2Bb%2F%3D",
            "",
            200,
            list(QUEUE),
            R::ListQueues(_)
        ),
        row!(
            GetQueue { queue: queue() },
            format!("GET {}", path("")),
            "",
            200,
            QUEUE,
            R::GetQueue(view) if view.settings.timeout == Some(Span::from_s(300))
        ),
        row!(
            PutQueue { queue: queue(), settings },
            format!("PUT {}", path("")),
            format!(
                r#"{{"needs":{NEEDS},"retry":null,"timeout":"5m","retain":null,"max_waiting":9,
                    "lost_delay":"0s","shares":{{"tenant-7":3}},"show_payload":false}}"#
            ),
            201,
            QUEUE,
            R::PutQueue(Put { created: true, .. })
        ),
        row!(
            PatchQueue {
                queue: queue(),
                needs: Patch::Reset,
                retry: Patch::Set(Retry::default()),
                timeout: Patch::Keep,
                retain: Patch::Set(Span::ZERO),
                max_waiting: Patch::Set(1),
                lost_delay: Patch::Reset,
                shares: Patch::Set(BTreeMap::new()),
                show_payload: Patch::Set(true),
            },
            format!("PATCH {}", path("")),
            r#"{"needs":null,"retry":{"max_attempts":20,"max_lost":3},"retain":"0s",
                "max_waiting":1,"lost_delay":null,"shares":{},"show_payload":true}"#,
            200,
            QUEUE,
            R::PatchQueue(Put { created: false, .. })
        ),
        row!(
            DeleteQueue { queue: queue() },
            format!("DELETE {}", path("")),
            "",
            204,
            "",
            R::DeleteQueue(())
        ),
        row!(
            PauseQueue { queue: queue(), until: None },
            format!("POST {}", path("/pause")),
            "{}",
            200,
            QUEUE,
            R::PauseQueue(_)
        ),
        row!(
            PauseQueue { queue: queue(), until: Some(Later::For(Span::from_s(5))) },
            format!("POST {}", path("/pause")),
            r#"{"for":"5s"}"#,
            200,
            QUEUE,
            R::PauseQueue(_)
        ),
        row!(
            ResumeQueue { queue: queue() },
            format!("POST {}", path("/resume")),
            "",
            200,
            QUEUE,
            R::ResumeQueue(_)
        ),
    ]
}

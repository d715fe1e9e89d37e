//! The streams of events of both engines, read to their ends.

use tenure_core::events::{EventId, EventType, Happened};
use tenure_core::names::Namespace;
use tenure_core::requests::{EventsSince, ReadEvents};
use tenure_engine::{CallError, Engine, EngineExt};

/// Events of a page.
const PAGE: usize = 1_000;

/// How far a stream was read.
#[derive(Default)]
pub struct Reader {
    last: Option<EventId>,
}

impl Reader {
    /// What happened since it was read last, except what an engine says of itself or may say at another moment.
    pub async fn read(
        &mut self,
        engine: &dyn Engine,
        namespace: &Namespace,
    ) -> Result<Vec<Happened>, CallError> {
        let mut all = Vec::new();
        loop {
            let since = self.last.map_or(EventsSince::First, EventsSince::Id);
            let read = ReadEvents { since, max: PAGE, ..ReadEvents::default() };
            let page = engine.run(namespace, read).await?;
            assert_eq!(page.gap, None, "nothing is dropped, and nothing is lost");
            let is_new = |id: EventId| self.last.is_none_or(|last| id.number > last.number);
            let items: Vec<_> = page.items.into_iter().filter(|event| is_new(event.id)).collect();
            let ended = items.is_empty();
            let first = self.last.map_or(1, |last| last.number + 1);
            let numbers = items.iter().map(|event| event.id.number);
            assert!(numbers.zip(first..).all(|(number, expected)| number == expected), "no holes");
            self.last = Some(page.next);
            all.extend(items.into_iter().map(|event| event.happened).filter(is_compared));
            if ended {
                return Ok(all);
            }
        }
    }
}

fn is_compared(happened: &Happened) -> bool {
    !matches!(
        happened.kind,
        EventType::JobBlocked
            | EventType::ClockBehind
            | EventType::EngineDeaf
            | EventType::EngineLearning
    )
}

//! The mark of a copy, and the end of a store that was to become one.

use tenure_redis::{CopyMark, Generation, PieceCall, Term};
use tenure_testkit::needs_redis;

use crate::scripts::{A, B, Said, World, said};

impl World {
    fn mark(&self, by: &Term, seen: &str, says: &str, must_be_empty: bool) -> Said {
        let (by, seen, says) = (by.clone(), seen.to_owned(), says.to_owned());
        said(&self.store.mark_copy(&CopyMark { by, seen, says, must_be_empty }).unwrap())
    }

    fn says(&self) -> String {
        self.store.look().unwrap().copy
    }

    fn drop_store(&self, by: &Term, says: &str) -> Said {
        said(&self.store.drop_store(by, says).unwrap())
    }
}

#[test]
fn a_mark_is_written_by_the_leader_alone_over_the_one_it_saw() {
    needs_redis!();
    let world = World::new();
    let old = world.own(A);
    let by = world.own(B);
    assert_eq!(world.mark(&old, "", "mine", false), Said::Fenced);
    assert_eq!(world.mark(&by, "other", "mine", false), Said::NotAsSeen);
    assert_eq!(world.says(), "");
    for _ in 0..2 {
        assert_eq!(world.mark(&by, "", "mine", true), Said::Done);
        assert_eq!(world.says(), "mine");
    }
    assert_eq!(world.mark(&by, "", "yours", false), Said::NotAsSeen);
    world.fill(&by, &[b"one"]);
    assert_eq!(world.mark(&by, "mine", "empty", true), Said::At(1));
    assert_eq!(world.mark(&by, "mine", "full", false), Said::Done);
    assert_eq!(world.mark(&by, "full", "", false), Said::Done);
    assert_eq!(world.says(), "");
}

#[test]
fn a_store_is_dropped_whole_and_only_under_the_seen_mark() {
    needs_redis!();
    let world = World::new();
    let old = world.own(A);
    let by = world.own(B);
    assert_eq!(world.mark(&by, "", "mine", true), Said::Done);
    world.fill(&by, &[b"one"]);
    let generation = Generation { epoch: by.epoch, count: 1 };
    // More keys than a script can take as arguments of one command.
    for index in 0..8_000 {
        let piece = PieceCall { by: by.clone(), generation, index, body: Some(b"rows".to_vec()) };
        assert_eq!(world.piece(&piece), Said::Done);
    }
    assert_eq!(world.drop_store(&old, "mine"), Said::Fenced);
    assert_eq!(world.drop_store(&by, "yours"), Said::NotAsSeen);
    assert_eq!(world.says(), "mine");
    for _ in 0..2 {
        assert_eq!(world.drop_store(&by, "mine"), Said::Done);
        assert_eq!(world.redis.must(&["KEYS", "*"]).list().len(), 0);
    }
}

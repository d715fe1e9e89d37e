//! Histories that once failed, in their shortest form. They stay, so that what was found once needs
//! no luck to be found again.

use super::world::{Step, World};

fn play(steps: &[Step]) {
    if let Err(failure) = World::default().play(steps) {
        panic!("{failure}");
    }
}

/// The timer of a door was set for the first in its order alone. A lane that reserves stands there
/// beside it, and may fit sooner: what it keeps is kept from the others, not from itself.
#[test]
fn time_opens_a_door_for_the_lane_that_reserves_too() {
    play(&[
        Step::Lease { queue: 0, more: 0, max: 1, worker: 0 },
        Step::Push { queue: 0, priority: 0, group: 0, needs: 53, n: 1 },
        Step::Push { queue: 0, priority: 0, group: 0, needs: 0, n: 1 },
        Step::Push { queue: 0, priority: 0, group: 0, needs: 0, n: 1 },
        Step::Delay { queue: 0, needs: 0, delay: 1 },
        Step::Push { queue: 0, priority: 0, group: 0, needs: 0, n: 1 },
        Step::Push { queue: 0, priority: 0, group: 0, needs: 0, n: 1 },
        Step::Push { queue: 0, priority: 94, group: 0, needs: 0, n: 1 },
        Step::Retry { job: 0 },
        Step::ResumeQueue { queue: 0 },
        Step::Push { queue: 0, priority: 0, group: 0, needs: 0, n: 1 },
        Step::Call { needs: 1, wait: 904, place: false },
        Step::Push { queue: 162, priority: 167, group: 133, needs: 190, n: 2 },
        Step::Push { queue: 53, priority: 149, group: 149, needs: 20, n: 1 },
        Step::Push { queue: 224, priority: 106, group: 40, needs: 7, n: 2 },
        Step::Lease { queue: 103, more: 240, max: 3, worker: 28 },
        Step::Lease { queue: 108, more: 243, max: 4, worker: 211 },
        Step::PutLimit { limit: 210, cap: 216, rate: 29 },
        Step::Settle { lease: 65, how: 164 },
        Step::Settle { lease: 112, how: 220 },
        Step::Push { queue: 111, priority: 35, group: 98, needs: 122, n: 3 },
        Step::Wait { queue: 163, max: 1, wait: 693 },
        Step::Push { queue: 183, priority: 142, group: 39, needs: 82, n: 3 },
        Step::Patch { job: 205, priority: 29, needs: 196 },
        Step::Call { needs: 100, wait: 1187, place: true },
        Step::Push { queue: 161, priority: 210, group: 33, needs: 79, n: 1 },
        Step::Delay { queue: 187, needs: 52, delay: 706 },
        Step::Push { queue: 88, priority: 36, group: 120, needs: 48, n: 3 },
        Step::Push { queue: 231, priority: 50, group: 86, needs: 138, n: 1 },
        Step::Delay { queue: 89, needs: 100, delay: 1 },
        Step::Pass { ms: 29 },
        Step::Lease { queue: 137, more: 164, max: 5, worker: 143 },
        Step::Pass { ms: 1104 },
        Step::Settle { lease: 91, how: 41 },
        Step::Lease { queue: 181, more: 4, max: 5, worker: 145 },
        Step::Pass { ms: 1385 },
        Step::PutLimit { limit: 85, cap: 189, rate: 250 },
        Step::Pass { ms: 1265 },
        Step::Lease { queue: 26, more: 78, max: 3, worker: 7 },
        Step::Delay { queue: 209, needs: 169, delay: 40 },
        Step::Pass { ms: 8721 },
    ]);
}

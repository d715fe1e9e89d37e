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

/// The check of the order, not the machine, was wrong: a lane may reserve at a door while a bundle
/// of its queue is out for it, and what is beyond the reservation is free for all.
#[test]
fn what_a_lane_reserves_is_all_that_is_kept_from_later_ones() {
    play(&[
        Step::Push { queue: 0, priority: 0, group: 0, needs: 52, n: 1 },
        Step::Push { queue: 235, priority: 0, group: 0, needs: 228, n: 1 },
        Step::Push { queue: 235, priority: 164, group: 0, needs: 43, n: 3 },
        Step::Push { queue: 106, priority: 14, group: 0, needs: 246, n: 2 },
        Step::Retry { job: 0 },
        Step::Call { needs: 187, wait: 1, place: false },
        Step::Push { queue: 187, priority: 29, group: 0, needs: 187, n: 2 },
        Step::PutPool { quarantine: 189, rate: 13 },
        Step::Back { ms: 5426 },
        Step::Lease { queue: 3, more: 0, max: 1, worker: 0 },
        Step::Cancel { job: 40 },
        Step::Settle { lease: 0, how: 14 },
        Step::Lease { queue: 79, more: 0, max: 1, worker: 0 },
        Step::Push { queue: 98, priority: 0, group: 0, needs: 36, n: 1 },
        Step::Wait { queue: 65, max: 1, wait: 1 },
        Step::Wait { queue: 64, max: 1, wait: 1 },
        Step::Settle { lease: 13, how: 0 },
        Step::Wait { queue: 190, max: 1, wait: 1 },
        Step::Call { needs: 37, wait: 1, place: false },
        Step::Settle { lease: 19, how: 46 },
        Step::Back { ms: 2627 },
        Step::Push { queue: 15, priority: 0, group: 0, needs: 149, n: 1 },
        Step::Lease { queue: 46, more: 42, max: 3, worker: 0 },
        Step::Call { needs: 4, wait: 1, place: false },
        Step::Push { queue: 25, priority: 0, group: 48, needs: 150, n: 1 },
        Step::Observe { limit: 9, external: 2, hold: 4 },
        Step::Push { queue: 106, priority: 97, group: 64, needs: 126, n: 3 },
        Step::Settle { lease: 94, how: 37 },
        Step::Push { queue: 252, priority: 173, group: 219, needs: 71, n: 2 },
        Step::Settle { lease: 63, how: 29 },
        Step::Push { queue: 228, priority: 202, group: 77, needs: 128, n: 2 },
        Step::Settle { lease: 6, how: 212 },
        Step::Delay { queue: 73, needs: 94, delay: 563 },
        Step::Unique { queue: 165, key: 234, policy: 224, needs: 53 },
        Step::Push { queue: 143, priority: 213, group: 72, needs: 199, n: 3 },
        Step::Settle { lease: 11, how: 185 },
        Step::ResumeQueue { queue: 238 },
        Step::Settle { lease: 25, how: 111 },
        Step::Push { queue: 119, priority: 77, group: 232, needs: 149, n: 1 },
        Step::Push { queue: 121, priority: 210, group: 228, needs: 23, n: 2 },
        Step::Wait { queue: 20, max: 3, wait: 1 },
        Step::Wait { queue: 79, max: 1, wait: 3549 },
        Step::Pass { ms: 1386 },
        Step::Push { queue: 133, priority: 206, group: 64, needs: 59, n: 2 },
        Step::Pass { ms: 746 },
        Step::Pass { ms: 5310 },
        Step::PauseQueue { queue: 108, forever: true, pause: 1 },
        Step::Push { queue: 169, priority: 126, group: 96, needs: 85, n: 1 },
        Step::Pass { ms: 5611 },
    ]);
}

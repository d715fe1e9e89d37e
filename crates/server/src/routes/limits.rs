//! `/v1/limits`.

use tenure_core::decode;
use tenure_core::requests::{
    DeleteLimit, GetLimit, ListLimits, ObserveLimit, PatchLimit, PauseLimit, PutLimit, ResumeLimit,
};

use super::{Route, Takes, route};

const LIMIT: &[(u16, &str)] = &[(200, "Limit")];
const PUT: &[(u16, &str)] = &[(200, "Limit"), (201, "Limit")];

pub(super) static ROUTES: &[Route] = &[
    route!(ListLimits, "List limits that are set or in use", |asked| decode::list_limits(
        asked.query
    ))
    .query::<ListLimits>()
    .answers(&[(200, "Limits")]),
    route!(GetLimit, "Show a limit", |asked| decode::get_limit(asked.first())).answers(LIMIT),
    route!(PutLimit, "Replace all settings of a limit", |asked| decode::put_limit(
        asked.first(),
        asked.body
    ))
    .takes(Takes::Json("LimitSettings"))
    .answers(PUT),
    route!(PatchLimit, "Change settings of a limit", |asked| decode::patch_limit(
        asked.first(),
        asked.body
    ))
    .takes(Takes::Json("LimitPatch"))
    .answers(LIMIT),
    route!(DeleteLimit, "Forget settings of a limit", |asked| decode::delete_limit(asked.first())),
    route!(PauseLimit, "Pause a limit", |asked| decode::pause_limit(asked.first(), asked.body))
        .takes(Takes::Json("Later"))
        .answers(LIMIT),
    route!(ResumeLimit, "End a pause", |asked| decode::resume_limit(asked.first(), asked.body))
        .answers(LIMIT),
    route!(ObserveLimit, "Say how many permits work outside takes", |asked| decode::observe_limit(
        asked.first(),
        asked.body
    ))
    .takes(Takes::Json("Observation"))
    .answers(LIMIT),
];

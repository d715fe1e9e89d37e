//! Refusals of needs: missing things, needs that never fit, and wrong forms on the command line.

use super::table::refusals;
use super::{Phrase, did_you_mean, listed};
use crate::names::{LimitName, PoolName, QueueName, ResourceId};

/// Advice on the form of a need on the command line.
const NEED_FORM: &str = "write limit:NAME[,weight=N][,cost=N], or pool:NAME[#TAG][,prefer=ID][,id=ID][,count=N], or \
                         JSON (for ids that contain a comma)";

refusals! {
    /// A need that a job or a caller cannot have.
    NeedRefusal:

    LimitUnknown "need_limit_unknown" { limit: LimitName }
        UnknownLimit
        detail("the limit {limit:?} is not set")
        hint("set it first: tenure limit set '{limit}' --concurrency 1");

    LimitAndTemplateUnknown "need_limit_and_template_unknown" { limit: LimitName, template: LimitName }
        UnknownLimit
        detail("the limit {limit:?} is not set")
        hint("set it, or the template {template:?} for all of its family: tenure limit set '{template}' \
              --concurrency 1");

    WeightNeverFits "need_weight_never_fits" { weight: u32, concurrency: u32, limit: LimitName }
        NeverFits
        detail("a weight of {weight} is above the concurrency {concurrency} of {limit:?}")
        hint("ask for less weight, or raise the limit's concurrency");

    CostNeverFits "need_cost_never_fits" { cost: u32, burst: u32, limit: LimitName }
        NeverFits
        detail("a cost of {cost} is above the burst {burst} of {limit:?}")
        hint("ask for less cost, or raise the rate's burst, which is 1 unless it is set");

    PoolUnknown "need_pool_unknown" { pool: PoolName }
        UnknownPool
        detail("there is no pool {pool:?}")
        hint("make it first: tenure pool set '{pool}', or sync its resources");

    ResourceUnknown "need_resource_unknown" { pool: PoolName, resource: ResourceId }
        UnknownResource
        detail("the pool {pool:?} has no resource {resource:?}")
        hint("add the resource first, or ask for a tag instead of an id");

    LimitTwice "need_limit_twice" { limit: LimitName }
        DuplicateNeed
        detail("the limit {limit:?} is needed twice")
        hint("name it once, with a \"weight\" or a \"cost\"");

    PoolTwice "need_pool_twice" { pool: PoolName }
        DuplicateNeed
        detail("the pool {pool:?} is needed twice")
        hint("name it once, with a \"count\"");

    NotATemplate "need_not_template" { limit: LimitName }
        InvalidField
        detail("{limit:?} has a placeholder that names no field of the payload")
        hint("write \"{{payload.FIELD}}\", such as \"site:{{payload.host}}\"; a field within another is \
              \"{{payload.page.host}}\"");

    PayloadLacks "need_payload_lacks" { queue: QueueName, field: String }
        InvalidField
        detail("the needs of the queue {queue:?} are filled in from the payload, which has no {field:?}")
        hint("send {field:?} in the payload, as text or as a whole number, or name the needs of the job: \"needs\": []");

    PayloadNoText "need_payload_no_text" { queue: QueueName, field: String }
        InvalidField
        detail("the needs of the queue {queue:?} are filled in from {field:?} of the payload, which is neither text nor a \
                whole number")
        hint("send {field:?} as text, or name the needs of the job: \"needs\": []");

    PayloadNoName "need_payload_no_name" { queue: QueueName, why: String }
        InvalidField
        detail("the needs of the queue {queue:?} are filled in from this value, and that makes no name of a limit: {why}")
        hint("send a value of at most 128 bytes without '/', '?', '#', ',' and '*', or name the needs of the job: \
              \"needs\": []");

    PatchLacksPayload "need_patch_lacks_payload" { queue: QueueName }
        InvalidField
        detail("the needs of the queue {queue:?} are filled in from the payload, and this patch names none")
        hint("send \"payload\" in the same patch, or name the needs of the job");

    NotANeed "not_a_need" { shown: String }
        InvalidField
        detail("{shown:?} is not a need")
        hint("{NEED_FORM}");

    OptionNotAPair "need_option_not_pair" { shown: String, option: String }
        InvalidField
        detail("in the need {shown:?}, {option:?} is not NAME=VALUE")
        hint("{NEED_FORM}");

    OptionTwice "need_option_twice" { shown: String, option: String }
        InvalidField
        detail("in the need {shown:?}, {option:?} stands twice")
        hint("{NEED_FORM}");

    OptionUnknown "need_option_unknown" { shown: String, kind: Phrase, known: Vec<Phrase> }
        UnknownField
        detail("{shown:?} is not an option of a {kind}")
        hint("{}use {}", did_you_mean(&shown, &known), listed(&known, "or"));

    CountOptionWithId "need_count_option_with_id" { shown: String }
        ConflictingFields
        detail("in {shown:?} the count does not go with the id of one")
        hint("leave out count or id");
}

impl NeedRefusal {
    /// The refusal of a limit that is not set; its hint names the template that would provide it, if one can.
    pub fn limit_unknown(limit: LimitName) -> Self {
        match limit.template() {
            Some(template) => NeedRefusal::LimitAndTemplateUnknown { limit, template },
            None => NeedRefusal::LimitUnknown { limit },
        }
    }
}

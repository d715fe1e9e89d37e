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

    LimitUnknown UnknownLimit { limit: LimitName }
        detail("the limit {limit:?} is not set")
        hint("set it first: tenure limit set '{limit}' --concurrency 1");

    LimitAndTemplateUnknown UnknownLimit { limit: LimitName, template: LimitName }
        detail("the limit {limit:?} is not set")
        hint("set it, or the template {template:?} for all of its family: tenure limit set '{template}' \
              --concurrency 1");

    WeightNeverFits NeverFits { weight: u32, concurrency: u32, limit: LimitName }
        detail("a weight of {weight} is above the concurrency {concurrency} of {limit:?}")
        hint("ask for less weight, or raise the limit's concurrency");

    CostNeverFits NeverFits { cost: u32, burst: u32, limit: LimitName }
        detail("a cost of {cost} is above the burst {burst} of {limit:?}")
        hint("ask for less cost, or raise the rate's burst, which is 1 unless it is set");

    PoolUnknown UnknownPool { pool: PoolName }
        detail("there is no pool {pool:?}")
        hint("make it first: tenure pool set '{pool}', or sync its resources");

    ResourceUnknown UnknownResource { pool: PoolName, resource: ResourceId }
        detail("the pool {pool:?} has no resource {resource:?}")
        hint("add the resource first, or ask for a tag instead of an id");

    LimitTwice DuplicateNeed { limit: LimitName }
        detail("the limit {limit:?} is needed twice")
        hint("name it once, with a \"weight\" or a \"cost\"");

    PoolTwice DuplicateNeed { pool: PoolName }
        detail("the pool {pool:?} is needed twice")
        hint("name it once, with a \"count\"");

    NotATemplate InvalidField { limit: LimitName }
        detail("{limit:?} has a placeholder that names no field of the payload")
        hint("write \"{{payload.FIELD}}\", such as \"site:{{payload.host}}\"; a field within another is \
              \"{{payload.page.host}}\"");

    PayloadLacks InvalidField { queue: QueueName, field: String }
        detail("the needs of the queue {queue:?} are filled in from the payload, which has no {field:?}")
        hint("send {field:?} in the payload, as text or as a whole number, or name the needs of the job: \"needs\": []");

    PayloadNoText InvalidField { queue: QueueName, field: String }
        detail("the needs of the queue {queue:?} are filled in from {field:?} of the payload, which is neither text nor a \
                whole number")
        hint("send {field:?} as text, or name the needs of the job: \"needs\": []");

    PayloadNoName InvalidField { queue: QueueName, why: String }
        detail("the needs of the queue {queue:?} are filled in from this value, and that makes no name of a limit: {why}")
        hint("send a value of at most 128 bytes without '/', '?', '#', ',' and '*', or name the needs of the job: \
              \"needs\": []");

    PatchLacksPayload InvalidField { queue: QueueName }
        detail("the needs of the queue {queue:?} are filled in from the payload, and this patch names none")
        hint("send \"payload\" in the same patch, or name the needs of the job");

    NotANeed InvalidField { shown: String }
        detail("{shown:?} is not a need")
        hint("{NEED_FORM}");

    OptionNotAPair InvalidField { shown: String, option: String }
        detail("in the need {shown:?}, {option:?} is not NAME=VALUE")
        hint("{NEED_FORM}");

    OptionTwice InvalidField { shown: String, option: String }
        detail("in the need {shown:?}, {option:?} stands twice")
        hint("{NEED_FORM}");

    OptionUnknown UnknownField { shown: String, kind: Phrase, known: Vec<Phrase> }
        detail("{shown:?} is not an option of a {kind}")
        hint("{}use {}", did_you_mean(&shown, &known), listed(&known, "or"));

    CountOptionWithId ConflictingFields { shown: String }
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

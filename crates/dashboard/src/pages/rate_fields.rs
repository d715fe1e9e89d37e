//! A rate in a form, and in the body of a call: three fields, for limits and pools.

use maud::{Markup, html};
use serde_json::{Map, Value};
use tenure_core::settings::Rate;

use crate::acting::{Field, body};
use crate::language::sentences;
use crate::visit::Visit;

sentences! { RateWords;
    rate: "Rate: count", "速率：次数";
    no_rate: "no rate", "无速率";
    per: "per period, such as 1m", "时间窗口，例如 1m";
    burst: "burst: how many at once after a pause", "空闲后可一次发放的次数";
}

/// The fields, with their values.
pub(super) fn fields(visit: &Visit, rate: Option<&Rate>) -> Markup {
    let words = RateWords(visit.tongue);
    html! {
        label { (words.rate())
            input name="count" inputmode="numeric" value=[rate.map(|rate| rate.count)] placeholder=(words.no_rate());
        }
        label { (words.per())
            input name="per" value=[rate.map(|rate| rate.per.to_string())] placeholder="1m";
        }
        label { (words.burst())
            input name="burst" inputmode="numeric" value=[rate.map(|rate| rate.burst)] placeholder="1";
        }
    }
}

/// Adds the form's rate to the body of a call; nothing if the form does not have these fields.
pub(super) fn say(visit: &Visit, into: &mut Map<String, Value>) {
    if !visit.form.has("count") {
        return;
    }
    let fields = [("count", Field::Number), ("per", Field::Text), ("burst", Field::Number)];
    let rate = body(visit, &fields);
    let is_set = rate.contains_key("count");
    into.insert("rate".to_owned(), if is_set { Value::Object(rate) } else { Value::Null });
}

/// The rate as options of the command line.
pub(super) fn option(rate: Option<&Rate>) -> [String; 4] {
    let (rate, burst) = match rate {
        Some(rate) => (format!("{}/{}", rate.count, rate.per), rate.burst.to_string()),
        None => ("10/1m".to_owned(), "1".to_owned()),
    };
    ["--rate".to_owned(), rate, "--burst".to_owned(), burst]
}

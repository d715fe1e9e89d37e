//! Actions on a resource of a pool: add, cool, ban, restore, remove. Its data goes in and never out.

use maud::html;
use serde_json::Value;
use tenure_core::decode::{self, Decode};
use tenure_core::requests::{
    AddResources, BanResource, CoolResource, DeleteResource, RestoreResource,
};

use super::{PageRow, Section, action, draw};
use crate::acting::{Field, back_to, body, said};
use crate::language::sentences;
use crate::show::{Confirm, ask_to_destroy};
use crate::visit::{Drawn, Unanswered, Visit};

sentences! { Says;
    cool: "Cool", "冷却";
    ban: "Ban", "禁用";
    remove: "Remove", "移除";
    add: "Add", "添加";
    cool_title(id): "Let \"{id}\" rest?", "让“{id}”冷却？";
    cool_what: "It is not granted until then. Its current holders keep it.",
        "在此之前不再发放。当前持有者继续持有。";
    cool_for: "For how long, such as 10m", "冷却多久，例如 10m";
    ban_title(id): "Ban \"{id}\"?", "禁用“{id}”？";
    ban_what: "It is not granted until it is restored. Its current holders keep it.",
        "在恢复之前不再发放。当前持有者继续持有。";
    ban_reason: "Reason, for later readers", "原因，供以后查看";
    remove_title(id): "Remove \"{id}\"?", "移除“{id}”？";
    remove_what: "It is deleted with its data when no holder has it any more.", "当前持有者完成后，它将连同数据一起删除。";
    add_title(pool): "Add a resource to \"{pool}\"", "向“{pool}”添加资源";
    id: "Id", "ID";
    tags: "Tags, separated by spaces", "标签，以空格分隔";
    slots: "Holders at once", "同时持有者数";
    data: "Data (JSON), such as a password: each holder of the resource gets it, and no page shows it again",
        "数据（JSON），例如密码：发放给持有者，任何页面都不再显示";
}

pub(super) const ROWS: &[PageRow] = &[
    PageRow::new(Section::Pools, "/pools/{}/add")
        .shows(draw!(ask_add))
        .acts(action!(AddResources, add)),
    PageRow::new(Section::Pools, "/pools/{}/resources/{}/cool")
        .shows(draw!(ask_cool))
        .acts(action!(CoolResource, cool)),
    PageRow::new(Section::Pools, "/pools/{}/resources/{}/ban")
        .shows(draw!(ask_ban))
        .acts(action!(BanResource, ban)),
    PageRow::new(Section::Pools, "/pools/{}/resources/{}/restore")
        .acts(action!(RestoreResource, restore)),
    PageRow::new(Section::Pools, "/pools/{}/resources/{}/remove")
        .shows(draw!(ask_remove))
        .acts(action!(DeleteResource, remove)),
];

/// The pool and the resource in the path.
fn path_of(visit: &Visit) -> [&str; 2] {
    [visit.name(), visit.names.get(1).map_or("", String::as_str)]
}

fn back(visit: &Visit, did: &str) -> Result<Drawn, Unanswered> {
    let [name, id] = path_of(visit);
    back_to(visit, &["pools", name], &[("did", did), ("id", id)])
}

async fn ask_cool(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let [name, id] = path_of(visit);
    Confirm {
        title: says.cool_title(id),
        says: vec![says.cool_what()],
        fields: &[],
        asks: Some(
            html! { label { (says.cool_for()) input name="for" required placeholder="10m"; } },
        ),
        label: says.cool(),
        is_danger: false,
        command: visit.command(&["pool", "cool", name, id, "--for", "10m"]),
        back: visit.to("pools", name),
    }
    .ask(visit)
}

async fn cool(visit: &Visit) -> Result<Drawn, Unanswered> {
    let body = said(visit, &[("for", Field::Text)]);
    visit.ask(CoolResource::of(&visit.names, body.as_bytes())?).await?;
    back(visit, "cooled")
}

async fn ask_ban(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let [name, id] = path_of(visit);
    Confirm {
        title: says.ban_title(id),
        says: vec![says.ban_what()],
        fields: &[],
        asks: Some(html! { label { (says.ban_reason()) input name="reason" maxlength="200"; } }),
        label: says.ban(),
        is_danger: true,
        command: visit.command(&["pool", "ban", name, id]),
        back: visit.to("pools", name),
    }
    .ask(visit)
}

async fn ban(visit: &Visit) -> Result<Drawn, Unanswered> {
    let body = said(visit, &[("reason", Field::Text)]);
    visit.ask(BanResource::of(&visit.names, body.as_bytes())?).await?;
    back(visit, "banned")
}

async fn restore(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(RestoreResource::of(&visit.names, b"")?).await?;
    back(visit, "restored")
}

async fn ask_remove(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let [name, id] = path_of(visit);
    let (title, what) = (says.remove_title(id), vec![says.remove_what()]);
    let words = ["pool", "remove", name, id];
    ask_to_destroy(visit, title, what, says.remove(), &words, visit.to("pools", name))
}

async fn remove(visit: &Visit) -> Result<Drawn, Unanswered> {
    visit.ask(DeleteResource::of(&visit.names, b"")?).await?;
    back(visit, "removed")
}

async fn ask_add(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let name = visit.name();
    let asks = html! {
        label { (says.id()) input name="id" required autocomplete="off" spellcheck="false"; }
        label { (says.tags()) input name="tags" autocomplete="off" spellcheck="false"; }
        label { (says.slots()) input name="slots" inputmode="numeric" placeholder="1"; }
        label { (says.data())
            textarea name="data" rows="4" autocomplete="off" spellcheck="false" placeholder="{}" {}
        }
    };
    Confirm {
        title: says.add_title(name),
        says: Vec::new(),
        fields: &[],
        asks: Some(asks),
        label: says.add(),
        is_danger: false,
        command: visit.command(&["pool", "add", name, "ID", "--tag", "cn", "--data", "@data.json"]),
        back: visit.to("pools", name),
    }
    .ask(visit)
}

async fn add(visit: &Visit) -> Result<Drawn, Unanswered> {
    let mut body = body(visit, &[("id", Field::Text), ("slots", Field::Number)]);
    let tags: Vec<Value> =
        visit.form.get("tags").unwrap_or_default().split_whitespace().map(Value::from).collect();
    body.insert("tags".to_owned(), Value::Array(tags));
    let mut added =
        decode::add_resources(visit.name(), Value::Object(body).to_string().as_bytes())?;
    // Read on its own, so that the data cannot contain other fields.
    let data = visit.form.get("data").unwrap_or("{}");
    for one in &mut added.resources {
        one.data = decode::payload_line(data.as_bytes())?;
    }
    visit.ask(added).await?;
    let id = visit.form.get("id").unwrap_or_default().trim();
    back_to(visit, &["pools", visit.name()], &[("did", "added"), ("id", id)])
}

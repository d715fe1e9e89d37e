//! `tenure pool`: shows pools and their resources, sets and fills them. No data is ever shown.

use tenure::Client;
use tenure_core::requests::{
    AddResources, BanResource, CoolResource, DeletePool, DeleteResource, GetPool, ListPools,
    ListResources, Operation, PatchPool, RestoreResource,
};
use tenure_core::settings::{NewResource, PoolView, ResourceState, ResourceView};

use crate::args::settings::{PoolAction, PoolArgs};
use crate::args::value::Setting;
use crate::cmd::holders::Holders;
use crate::cmd::limit::{rate_of, rate_text};
use crate::cmd::next_page;
use crate::cmd::pool_sync;
use crate::cmd::set_file::{LineBreaks, SetFile};
use crate::exit::Failure;
use crate::json_args;
use crate::output::Output;
use crate::output::clock::{self, second};
use crate::output::page::Page;
use crate::output::table::{Table, or_dash, when};

/// Shows pools, or runs the action.
pub async fn run(client: &Client, out: Output, args: PoolArgs) -> Result<(), Failure> {
    match (args.action, args.name) {
        (Some(action), _) => act(client, out, action).await,
        (None, Some(pool)) => {
            let view = client.run(GetPool { pool: pool.clone() }).await?;
            let request = ListResources { pool, page: args.page.page() };
            let listed = client.run(request).await?;
            let holders = holders(client, out, &listed.items).await;
            // Two calls, and so with --json an array of both answers.
            out.answer(&(&view, &listed), |(view, listed)| {
                people(view) + "\n" + &resources(&listed.items, &holders)
            })?;
            next_page::tell(out, listed.next.as_deref(), listed.partial);
            Ok(())
        }
        (None, None) => {
            let listed = client.run(ListPools { page: args.page.page() }).await?;
            next_page::answer(out, &listed, table)
        }
    }
}

async fn act(client: &Client, out: Output, action: PoolAction) -> Result<(), Failure> {
    match action {
        PoolAction::Set { name, quarantine, cooldown, rate, burst, max_uses, pick } => {
            let patch = PatchPool {
                pool: name,
                quarantine: Setting::of(quarantine),
                cooldown: Setting::of(cooldown),
                rate: rate_of(rate, burst)?,
                max_uses: Setting::of(max_uses),
                pick: Setting::of(pick),
            };
            let put = client.set(patch).await?;
            out.answer(&put.view, people)
        }
        PoolAction::Sync { name, file, id, force, format, multiline, version } => {
            let breaks = LineBreaks::said(multiline);
            let file = SetFile { file: &file, format, breaks };
            let how = pool_sync::SyncHow { file, id: &id };
            pool_sync::run(client, out, name, how, force, version).await
        }
        PoolAction::Add { name, id, data, tags, slots } => {
            let data = json_args::data(data.as_deref())?;
            let resources = vec![NewResource { id, data, tags, slots }];
            let mut added = client.run(AddResources { pool: name, resources }).await?;
            match added.pop() {
                Some(view) => out.answer(&view, one),
                None => Err(Failure::bug("a resource was added, and none was answered")),
            }
        }
        PoolAction::Resources { name, page } => {
            let listed = client.run(ListResources { pool: name, page: page.page() }).await?;
            let holders = holders(client, out, &listed.items).await;
            next_page::answer(out, &listed, |items| resources(items, &holders))
        }
        PoolAction::Remove(which) => {
            let pool = which.name;
            let ids = which.ids.into_iter();
            let calls = ids.map(|resource| DeleteResource { pool: pool.clone(), resource });
            each(client, calls, |()| ()).await?;
            out.done("retired: each is removed when it is free")
        }
        PoolAction::Cool { which, later } => {
            let (pool, until) = (which.name, later.later());
            let calls = which.ids.into_iter().map(|resource| CoolResource {
                pool: pool.clone(),
                resource,
                until,
            });
            show(client, out, each(client, calls, |view| view).await?).await
        }
        PoolAction::Ban { which, reason } => {
            let pool = which.name;
            let calls = which.ids.into_iter().map(|resource| BanResource {
                pool: pool.clone(),
                resource,
                reason: reason.clone(),
            });
            show(client, out, each(client, calls, |view| view).await?).await
        }
        PoolAction::Restore(which) => {
            let pool = which.name;
            let ids = which.ids.into_iter();
            let calls = ids.map(|resource| RestoreResource { pool: pool.clone(), resource });
            show(client, out, each(client, calls, |view| view).await?).await
        }
        PoolAction::Delete { name } => {
            client.run(DeletePool { pool: name.clone() }).await?;
            out.done(&format!("pool '{name}' was deleted"))
        }
    }
}

/// One call per resource; the first refusal ends it, and names what it refused.
async fn each<O: Operation, T>(
    client: &Client,
    calls: impl Iterator<Item = O>,
    take: impl Fn(O::Reply) -> T,
) -> Result<Vec<T>, Failure> {
    let mut done = Vec::new();
    for call in calls {
        done.push(take(client.run(call).await?));
    }
    Ok(done)
}

async fn show(client: &Client, out: Output, views: Vec<ResourceView>) -> Result<(), Failure> {
    let holders = holders(client, out, &views).await;
    match views.as_slice() {
        [view] => out.answer(view, one),
        views => out.answer(views, |views| resources(views, &holders)),
    }
}

async fn holders(client: &Client, out: Output, resources: &[ResourceView]) -> Holders {
    let all = resources.iter().flat_map(|resource| &resource.holders);
    Holders::ask(client, out, all.map(|one| one.holder.as_str())).await
}

fn table(pools: &[PoolView]) -> String {
    let numbers = ["AVAILABLE", "LEASED", "COOLING", "BANNED", "WAITING"];
    let mut table = Table::new(&[&["POOL"], &numbers[..]].concat()).numbers(&numbers);
    for pool in pools {
        table.row([
            pool.name.to_string(),
            pool.available.to_string(),
            pool.leased.to_string(),
            pool.cooling.to_string(),
            pool.banned.to_string(),
            pool.waiting.to_string(),
        ]);
    }
    table.render("no pools")
}

fn people(pool: &PoolView) -> String {
    let settings = &pool.settings;
    let mut page = Page::default();
    page.field("pool", &pool.name)
        .field("available", pool.available)
        .field("leased", pool.leased)
        .field("cooling", pool.cooling)
        .field("banned", pool.banned)
        .field("waiting", pool.waiting)
        .field("quarantine", settings.quarantine)
        .field("cooldown", settings.cooldown)
        .maybe("rate", settings.rate.as_ref().map(rate_text))
        .maybe("max uses", settings.max_uses)
        .field("pick", super::job::json(&settings.pick).trim_matches('"'));
    page.render()
}

fn state(resource: &ResourceView) -> &'static str {
    match resource.state {
        _ if resource.retiring => "retiring",
        // It is neither cooling nor banned, and yet has no free slot.
        ResourceState::Available if resource.in_use >= resource.slots => "in use",
        ResourceState::Available => "available",
        ResourceState::Cooling => "cooling",
        ResourceState::Banned => "banned",
    }
}

fn one(resource: &ResourceView) -> String {
    let mut page = Page::default();
    page.field("id", &resource.id)
        .field("state", state(resource))
        .maybe("reason", resource.reason.as_ref())
        .maybe("until", resource.until.map(second))
        .field("in use", format!("{} of {}", resource.in_use, resource.slots))
        .maybe("tags", Some(tags(resource)).filter(|tags| !tags.is_empty()))
        .field("uses", resource.uses);
    page.render()
}

fn tags(resource: &ResourceView) -> String {
    resource.tags.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn resources(resources: &[ResourceView], holders: &Holders) -> String {
    let now = clock::now();
    let head = ["ID", "STATE", "IN USE", "USES", "LAST USED", "UNTIL", "TAGS", "NOTE"];
    let mut table = Table::new(&head).numbers(&["USES"]);
    for resource in resources {
        let held = resource.holders.iter().map(|one| holders.name(&one.holder));
        let note = resource.reason.clone().unwrap_or_else(|| held.collect::<Vec<_>>().join(" "));
        table.row([
            resource.id.to_string(),
            state(resource).to_owned(),
            format!("{} of {}", resource.in_use, resource.slots),
            resource.uses.to_string(),
            or_dash(resource.last_used_at.map(|at| when(at, now))),
            or_dash(resource.until.map(|at| when(at, now))),
            tags(resource),
            note,
        ]);
    }
    table.render("no resources")
}

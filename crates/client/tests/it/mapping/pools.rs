//! Pools and their resources.

use tenure::core::requests::*;
use tenure::core::settings::{Pick, PoolSettings};
use tenure::{Json, Later, Span};

use super::words::*;
use super::{Row, row};

pub(super) fn rows() -> Vec<Row> {
    use Reply as R;
    let settings = PoolSettings {
        quarantine: Span::from_s(60),
        cooldown: Span::ZERO,
        rate: Some(rate()),
        max_uses: None,
        pick: Pick::Random,
    };
    let sync =
        |resources, meant, version| SyncResources { pool: pool(), resources, meant, version };
    let synced = r#"{"added":1,"updated":2,"unchanged":3,"retired":4,"retiring":5,"new":1}"#;
    let one = |verb: &str| format!("POST {RESOURCE_PATH}{verb}");
    vec![
        row!(ListPools::default(), "GET /v1/pools?max=100", "", 200, list(POOL), R::ListPools(_)),
        row!(GetPool { pool: pool() }, "GET /v1/pools/p", "", 200, POOL, R::GetPool(_)),
        row!(
            PutPool { pool: pool(), settings },
            "PUT /v1/pools/p",
            r#"{"quarantine":"1m","cooldown":"0s","rate":{"count":10,"per":"1s","burst":2},
                "max_uses":null,"pick":"random"}"#,
            201,
            POOL,
            R::PutPool(Put { created: true, .. })
        ),
        row!(
            PatchPool {
                pool: pool(),
                quarantine: Patch::Keep,
                cooldown: Patch::Set(Span::from_s(1)),
                rate: Patch::Reset,
                max_uses: Patch::Set(5),
                pick: Patch::Set(Pick::Lru),
            },
            "PATCH /v1/pools/p",
            r#"{"cooldown":"1s","rate":null,"max_uses":5,"pick":"lru"}"#,
            200,
            POOL,
            R::PatchPool(Put { created: false, .. })
        ),
        row!(DeletePool { pool: pool() }, "DELETE /v1/pools/p", "", 204, "", R::DeletePool(())),
        row!(
            sync(vec![new_resource()], Meant::Ask, None),
            "PUT /v1/pools/p/resources",
            format!("[{NEW_RESOURCE}]"),
            200,
            synced,
            R::SyncResources(synced) if synced.retiring == 5
        ),
        row!(
            sync(vec![], Meant::Yes, Some(7)),
            "PUT /v1/pools/p/resources?force=true&version=7",
            "[]",
            200,
            synced,
            R::SyncResources(_)
        ),
        row!(
            AddResources { pool: pool(), resources: vec![new_resource()] },
            "POST /v1/pools/p/resources",
            format!("[{NEW_RESOURCE}]"),
            200,
            format!("[{RESOURCE}]"),
            R::AddResources(added) if added.len() == 1
        ),
        row!(
            ListResources { pool: pool(), page: page() },
            "GET /v1/pools/p/resources?max=7&cursor=a%2Bb%2F%3D",
            "",
            200,
            list(RESOURCE),
            R::ListResources(_)
        ),
        row!(
            GetResource { pool: pool(), resource: resource() },
            format!("GET {RESOURCE_PATH}"),
            "",
            200,
            RESOURCE,
            R::GetResource(_)
        ),
        row!(
            PatchResource {
                pool: pool(),
                resource: resource(),
                data: Patch::Set(Json::from(1)),
                tags: Patch::Reset,
                slots: Patch::Keep,
            },
            format!("PATCH {RESOURCE_PATH}"),
            r#"{"data":1,"tags":null}"#,
            200,
            RESOURCE,
            R::PatchResource(_)
        ),
        row!(
            DeleteResource { pool: pool(), resource: resource() },
            format!("DELETE {RESOURCE_PATH}"),
            "",
            204,
            "",
            R::DeleteResource(())
        ),
        row!(
            CoolResource { pool: pool(), resource: resource(), until: Later::For(Span::from_s(5)) },
            one("/cool"),
            r#"{"for":"5s"}"#,
            200,
            RESOURCE,
            R::CoolResource(_)
        ),
        row!(
            BanResource { pool: pool(), resource: resource(), reason: Some("captcha".into()) },
            one("/ban"),
            r#"{"reason":"captcha"}"#,
            200,
            RESOURCE,
            R::BanResource(_)
        ),
        row!(
            BanResource { pool: pool(), resource: resource(), reason: None },
            one("/ban"),
            "{}",
            200,
            RESOURCE,
            R::BanResource(_)
        ),
        row!(
            RestoreResource { pool: pool(), resource: resource() },
            one("/restore"),
            "",
            200,
            RESOURCE,
            R::RestoreResource(_)
        ),
    ]
}

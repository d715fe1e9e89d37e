//! Ids that an earlier release took and this one refuses.

use tenure_core::job::{NewJob, OnConflict, Unique, Until};
use tenure_core::names::*;
use tenure_core::requests::*;
use tenure_core::secret::Json;
use tenure_core::settings::{NewResource, PoolSettings};

use crate::store::calls::*;

#[test]
fn what_is_stored_under_ids_with_blanks_stays_readable() {
    block(async {
        let mut here = Here::new();
        let id = JobId::known(" old\u{200b}").unwrap();
        let unique = Unique {
            key: UniqueKey::known("key\u{a0}").unwrap(),
            until: Until::End,
            hold: None,
            on_conflict: OnConflict::Keep,
            within: None,
        };
        let old = NewJob {
            id: Some(id.clone()),
            group: Some(Group::known("group ").unwrap()),
            flow: Some(FlowName::known(" flow").unwrap()),
            unique: Some(unique),
            ..job("unused")
        };
        push(&here.engine, vec![old]).await;
        let pool = PoolName::parse("p").unwrap();
        let id_of = ResourceId::known(" r").unwrap();
        let resource = NewResource { id: id_of, data: Json::null(), tags: Vec::new(), slots: 1 };
        let add = AddResources { pool: pool.clone(), resources: vec![resource.clone()] };
        run(&here.engine, PutPool { pool: pool.clone(), settings: PoolSettings::default() })
            .await
            .unwrap();
        run(&here.engine, add).await.unwrap();
        here.engine.crash();
        here.reopen();
        let by_key = JobRef::parse("key:key\u{a0}").unwrap();
        for job in [JobRef::parse(" old\u{200b}").unwrap(), by_key] {
            let found = run(&here.engine, GetJob { job }).await.unwrap();
            assert_eq!(found.id, id);
            assert_eq!(found.group.unwrap().as_str(), "group ");
            assert_eq!(found.flow.unwrap().as_str(), " flow");
        }
        let lease = take(&here.engine, 1).await.remove(0);
        assert!(settle(&here.engine, vec![done(&lease)]).await.settled[0].ok);
        here.engine.crash();
        here.reopen();
        run(&here.engine, DeleteJob { job: JobRef::Id(id) }).await.unwrap();
        let delete = DeleteResource { pool, resource: resource.id };
        run(&here.engine, delete).await.unwrap();
    });
}

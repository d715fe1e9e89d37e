//! Resources of a pool: whole sets, additions, and calls on one resource. Their data is taken as it
//! was sent, and no refusal repeats it.

use super::fields::{self, ObjectShape, Value, document, is_empty};
use super::lines::{LineRead, read_line, read_lines};
use super::paths::{ResourcePath, pool_path, resource_path};
use super::query::sync_query;
use super::times::body_later;
use crate::at::At;
use crate::bounded::{COUNT, SetIds};
use crate::bounds::{ERROR_BYTES_MAX, ITEMS_MAX, RESOURCE_DATA_BYTES_MAX, TAGS_MAX};
use crate::json::Kind;
use crate::names::{ResourceId, Tag};
use crate::refusal::Refusal;
use crate::requests::{AddResources, BanResource, CoolResource, PatchResource, SyncResources};
use crate::secret::Json;
use crate::sentences::{BodyRefusal, SetPlace};
use crate::settings::NewResource;

const ANSWERED: &[&str] =
    &["state", "reason", "in_use", "until", "retiring", "holders", "uses", "last_used_at"];
static RESOURCE: ObjectShape<4> =
    ObjectShape { what: "a resource", fields: ["id", "data", "tags", "slots"], answered: ANSWERED };
static PATCH: ObjectShape<3> = ObjectShape {
    what: "a patch of a resource",
    fields: ["data", "tags", "slots"],
    answered: &["id", "state", "reason", "in_use", "until", "retiring", "holders", "uses"],
};
static BAN: ObjectShape<1> = ObjectShape { what: "a ban", fields: ["reason"], answered: &[] };

/// Reads `PUT /v1/pools/{name}/resources` with an array of any length, the whole set.
pub fn sync_resources<K: AsRef<str>, V: AsRef<str>>(
    name: &str,
    query: &[(K, V)],
    body: &[u8],
) -> Result<SyncResources, Refusal> {
    let request = sync_resources_from_lines(name, query, Vec::new())?;
    let document = document(body)?;
    let body = Value::body(&document);
    if body.node.kind() != Kind::Array {
        return Err(body.refuse(BodyRefusal::NotASet { noun: body.node.kind().noun().into() }));
    }
    let (mut ids, mut index) = (SetIds::default(), 0);
    let resources = body.each_indexed(0..=usize::MAX, |item| {
        let one = resource(item)?;
        ids.once(one.id.clone(), SetPlace::Item(index), &At::Member(&item.at, "id"))?;
        index += 1;
        Ok(one)
    })?;
    Ok(SyncResources { resources, ..request })
}

/// The same with a set whose lines [`ResourceLines`] has read one by one.
pub fn sync_resources_from_lines<K: AsRef<str>, V: AsRef<str>>(
    name: &str,
    query: &[(K, V)],
    resources: Vec<NewResource>,
) -> Result<SyncResources, Refusal> {
    let pool = pool_path(name)?;
    let (meant, version) = sync_query(query)?;
    Ok(SyncResources { pool, resources, meant, version })
}

/// Reads `POST /v1/pools/{name}/resources` with one object, or an array of 1 to 1,000.
pub fn add_resources(name: &str, body: &[u8]) -> Result<AddResources, Refusal> {
    let pool = pool_path(name)?;
    let document = document(body)?;
    let body = Value::body(&document);
    let resources = match body.node.kind() {
        Kind::Array => body.each_indexed(1..=ITEMS_MAX, resource)?,
        _ => vec![resource(body)?],
    };
    Ok(AddResources { pool, resources })
}

/// The same with lines of NDJSON, 1 to 1,000 resources.
pub fn add_resources_from_lines(
    name: &str,
    resources: Vec<NewResource>,
) -> Result<AddResources, Refusal> {
    let pool = pool_path(name)?;
    if !(1..=ITEMS_MAX).contains(&resources.len()) {
        let (sent, most) = (resources.len(), ITEMS_MAX);
        return Err(Refusal::from(BodyRefusal::ResourcesOutside { sent, most }).at(""));
    }
    Ok(AddResources { pool, resources })
}

/// Reads one line of NDJSON, of at most 512 KiB. The caller counts the lines.
pub fn resource_line(line: &[u8]) -> Result<NewResource, Refusal> {
    let document = fields::line(line)?;
    resource(Value::body(&document))
}

/// Reads a whole set in NDJSON, and keeps its ids to refuse repeats.
#[derive(Debug, Default)]
pub struct ResourceLines {
    ids: SetIds<ResourceId>,
}

impl ResourceLines {
    /// Reads one numbered line of at most 512 KiB; a refusal has the number.
    pub fn read(&mut self, line: (usize, LineRead<'_>)) -> Result<NewResource, Refusal> {
        read_line(line, |number, line| self.read_whole(number, line))
    }

    fn read_whole(&mut self, number: usize, line: &[u8]) -> Result<NewResource, Refusal> {
        let one = resource_line(line)?;
        self.ids.once(one.id.clone(), SetPlace::Line(number), &At::Member(&At::Body, "id"))?;
        Ok(one)
    }

    /// Reads a whole body. Blank lines are counted and skipped.
    pub fn read_all(mut self, body: &[u8]) -> Result<Vec<NewResource>, Refusal> {
        read_lines(body, |line| self.read(line))
    }
}

fn resource(value: Value<'_, '_>) -> Result<NewResource, Refusal> {
    let fields = value.fields(&RESOURCE)?;
    Ok(NewResource {
        id: fields.required("id", "\"id\": \"13800000000\"")?.parsed(ResourceId::parse)?,
        data: fields.take("data", data)?.unwrap_or_default(),
        tags: fields.take("tags", tags)?.unwrap_or_default(),
        slots: fields.take("slots", slots)?.unwrap_or(1),
    })
}

fn data(value: Value<'_, '_>) -> Result<Json, Refusal> {
    value.json(RESOURCE_DATA_BYTES_MAX)
}

fn slots(value: Value<'_, '_>) -> Result<u32, Refusal> {
    value.integer(COUNT)
}

/// Reads at most 16 tags; a repeated tag counts once.
fn tags(value: Value<'_, '_>) -> Result<Vec<Tag>, Refusal> {
    let mut tags: Vec<Tag> = Vec::new();
    for tag in value.each(0..=TAGS_MAX, |item| item.parsed(Tag::parse))? {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    Ok(tags)
}

/// Reads the body of `PATCH /v1/pools/{name}/resources/{id}`; `null` resets a field to its default.
pub fn patch_resource(path: ResourcePath<'_>, body: &[u8]) -> Result<PatchResource, Refusal> {
    let (pool, resource) = resource_path(path)?;
    let document = document(body)?;
    let fields = Value::body(&document).fields(&PATCH)?;
    Ok(PatchResource {
        pool,
        resource,
        data: fields.patch("data", data)?,
        tags: fields.patch("tags", tags)?,
        slots: fields.patch("slots", slots)?,
    })
}

/// Reads the body of `POST …/resources/{id}/cool`: `{"for"|"until"}`.
pub fn cool_resource(path: ResourcePath<'_>, body: &[u8]) -> Result<CoolResource, Refusal> {
    let (pool, resource) = resource_path(path)?;
    Ok(CoolResource { pool, resource, until: body_later(body)? })
}

/// Reads the body of `POST …/resources/{id}/ban`: nothing, or `{"reason"}`.
pub fn ban_resource(path: ResourcePath<'_>, body: &[u8]) -> Result<BanResource, Refusal> {
    let (pool, resource) = resource_path(path)?;
    if is_empty(body) {
        return Ok(BanResource { pool, resource, reason: None });
    }
    let document = document(body)?;
    let fields = Value::body(&document).fields(&BAN)?;
    let reason = fields.take("reason", |v| v.short(ERROR_BYTES_MAX))?;
    Ok(BanResource { pool, resource, reason })
}

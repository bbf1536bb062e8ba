// The stand-in, driven by Notion's own client: what it accepts, gives back and refuses is what that client expects.
// Prints TAP. NOTION_CLIENTS is the folder of tools/mcp-clients.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const require = createRequire(process.env.NOTION_CLIENTS + '/x.js')
const { Client, APIErrorCode, collectPaginatedAPI, isFullPage, isFullDataSource, isFullDatabase } =
	require('@notionhq/client')

const server = spawn('python3', [new URL('standin.py', import.meta.url).pathname], { stdio: ['ignore', 'pipe', 'inherit'] })
const place = await new Promise((found) => createInterface({ input: server.stdout }).once('line', (l) => found(JSON.parse(l))))
const client = (more) =>
	new Client({ auth: place.token, baseUrl: place.url, notionVersion: '2026-03-11', retry: false, logLevel: 'error', ...more })
const notion = client()
const text = (content) => [{ text: { content } }]
const refused = (promise, code, status, says = /./) =>
	assert.rejects(promise, (e) => e.code === code && e.status === status && says.test(e.message))

let source
const make = (title, properties = {}, more = {}) =>
	notion.pages.create({
		parent: { type: 'data_source_id', data_source_id: source },
		properties: { 'Task name': { title: text(title) }, ...properties },
		...more,
	})

const tests = {
	async 'who am I'() {
		const me = await notion.users.me({})
		assert.equal(me.type, 'bot')
	},
	async 'a database has data sources, and they have the properties'() {
		const db = await notion.databases.retrieve({ database_id: place.database })
		assert.ok(isFullDatabase(db))
		source = db.data_sources[0].id
		const ds = await notion.dataSources.retrieve({ data_source_id: source })
		assert.ok(isFullDataSource(ds))
		assert.equal(ds.properties.Status.type, 'status')
		assert.ok(ds.properties.Status.status.options.some((o) => o.name === 'Needs Help'))
	},
	async 'ids without dashes are the same ids'() {
		const db = await notion.databases.retrieve({ database_id: place.database.replaceAll('-', '') })
		assert.equal(db.id, place.database)
	},
	async 'a page comes back as it was made'() {
		const page = await make('Fix the parser', {
			Status: { status: { name: 'Ready' } },
			Priority: { number: 7 },
			Class: { select: { name: 'Expedite' } },
			Due: { date: { start: '2026-12-01' } },
			Summary: { rich_text: text('so far') },
			Assignee: { people: [{ id: place.person }] },
		}, { markdown: '# Head\n\ntext\n' })
		assert.ok(isFullPage(page))
		const read = await notion.pages.retrieve({ page_id: page.id })
		assert.equal(read.properties['Task name'].title[0].plain_text, 'Fix the parser')
		assert.equal(read.properties.Status.status.name, 'Ready')
		assert.equal(read.properties.Priority.number, 7)
		assert.equal(read.properties.Class.select.name, 'Expedite')
		assert.equal(read.properties.Due.date.start, '2026-12-01')
		assert.equal(read.properties.ID.unique_id.prefix, 'TASK')
		assert.match(read.last_edited_time, /:00\.000Z$/)
		const body = await notion.pages.retrieveMarkdown({ page_id: page.id })
		assert.equal(body.markdown, '# Head\n\ntext')
		const next = await notion.pages.updateMarkdown({
			page_id: page.id, type: 'replace_content', replace_content: { new_str: 'new  \n' },
		})
		assert.equal(next.markdown, 'new')
	},
	async 'an update changes what it names'() {
		const page = await make('a', { Priority: { number: 1 } })
		const next = await notion.pages.update({ page_id: page.id, properties: { Status: { status: { name: 'Review' } } } })
		assert.equal(next.properties.Status.status.name, 'Review')
		assert.equal(next.properties.Priority.number, 1)
	},
	async 'a relation has two ends'() {
		const up = await make('parent')
		const page = await make('child', { 'Parent-task': { relation: [{ id: up.id }] } })
		const read = await notion.pages.retrieve({ page_id: up.id })
		assert.deepEqual(read.properties['Sub-tasks'].relation.map((r) => r.id), [page.id])
	},
	async 'trash: a page leaves the queries'() {
		const page = await make('gone', { Summary: { rich_text: text('only one') } })
		const filter = { property: 'Summary', rich_text: { equals: 'only one' } }
		assert.equal((await notion.dataSources.query({ data_source_id: source, filter })).results.length, 1)
		await notion.pages.update({ page_id: page.id, in_trash: true })
		assert.equal((await notion.dataSources.query({ data_source_id: source, filter })).results.length, 0)
	},
	async 'more than 100 pages come with cursors'() {
		for (let i = 0; i < 120; i++) await make(`many ${i}`)
		const first = await notion.dataSources.query({ data_source_id: source })
		assert.equal(first.results.length, 100)
		assert.ok(first.has_more && first.next_cursor)
		const all = await collectPaginatedAPI(notion.dataSources.query, { data_source_id: source })
		assert.equal(new Set(all.map((p) => p.id)).size, all.length)
		assert.ok(all.length >= 120)
	},
	async 'filters by time, two deep, with sorts'() {
		const since = new Date(Date.now() - 3600e3).toISOString()
		const found = await notion.dataSources.query({
			data_source_id: source,
			filter: {
				and: [
					{ timestamp: 'last_edited_time', last_edited_time: { on_or_after: since } },
					{ or: [
						{ property: 'Task name', title: { equals: 'many 3' } },
						{ property: 'Task name', title: { equals: 'many 4' } },
					] },
				],
			},
			sorts: [{ timestamp: 'created_time', direction: 'ascending' }],
		})
		assert.deepEqual(found.results.map((p) => p.properties['Task name'].title[0].plain_text), ['many 3', 'many 4'])
		await refused(notion.dataSources.query({
			data_source_id: source,
			filter: { and: [{ or: [{ and: [{ property: 'Status', status: { equals: 'Done' } }] }] }] },
		}), APIErrorCode.ValidationError, 400)
	},
	async 'comments'() {
		const page = await make('talk')
		const said = await notion.comments.create({ parent: { page_id: page.id }, rich_text: text('hello') })
		const list = await notion.comments.list({ block_id: page.id })
		assert.deepEqual(list.results.map((c) => c.id), [said.id])
		assert.equal(list.results[0].rich_text[0].plain_text, 'hello')
	},
	async 'options are added, and a new property'() {
		const before = await notion.dataSources.retrieve({ data_source_id: source })
		const options = before.properties.Class.select.options.map(({ name }) => ({ name }))
		await notion.dataSources.update({
			data_source_id: source,
			properties: { Class: { select: { options: [...options, { name: 'Someday' }] } }, Extra: { rich_text: {} } },
		})
		const page = await make('optional', { Class: { select: { name: 'Someday' } }, Extra: { rich_text: text('x') } })
		assert.equal(page.properties.Class.select.name, 'Someday')
	},
	async 'the description of a property'() {
		const about = async () => (await notion.dataSources.retrieve({ data_source_id: source })).properties['Pawl ID'].description
		assert.equal(await about(), null)
		await notion.dataSources.update({ data_source_id: source, properties: { 'Pawl ID': { rich_text: {}, description: 'whose' } } })
		assert.equal(await about(), 'whose')
	},
	async 'refusals'() {
		await refused(client({ auth: 'wrong' }).users.me({}), APIErrorCode.Unauthorized, 401)
		await refused(notion.databases.retrieve({ database_id: '00000000-0000-4000-8000-000000000000' }),
			APIErrorCode.ObjectNotFound, 404, /shared with your integration/)
		await refused(notion.pages.retrieve({ page_id: '00000000-0000-4000-8000-000000000000' }), APIErrorCode.ObjectNotFound, 404)
		await refused(make('x', { Nothing: { number: 1 } }), APIErrorCode.ValidationError, 400, /Nothing is not a property/)
		await refused(make('x', { Status: { status: { name: 'Never' } } }), APIErrorCode.ValidationError, 400, /Never/)
		await refused(make('x', { Priority: { number: 'high' } }), APIErrorCode.ValidationError, 400)
		await refused(make('x', { Due: { date: { start: 'soon' } } }), APIErrorCode.ValidationError, 400)
		await refused(make('x', { Summary: { rich_text: text('x'.repeat(2001)) } }), APIErrorCode.ValidationError, 400, /2000/)
		await refused(make('x', { Summary: { rich_text: Array(101).fill(text('x')[0]) } }), APIErrorCode.ValidationError, 400, /100/)
		await refused(client({ notionVersion: '1999-01-01' }).users.me({}), APIErrorCode.ValidationError, 400)
	},
}

let n = 0
let failed = 0
console.log(`1..${Object.keys(tests).length}`)
for (const [name, test] of Object.entries(tests)) {
	try {
		await test()
		console.log(`ok ${++n} ${name}`)
	} catch (e) {
		failed = 1
		console.log(`not ok ${++n} ${name}\n${String(e.stack).replace(/^/gm, '# ')}`)
	}
}
server.kill()
process.exitCode = failed

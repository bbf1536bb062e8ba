// Drains GRAPHILE_TASKS jobs with GRAPHILE_WORKERS workers of graphile-worker, and prints jobs a second. Runs in a folder whose
// node_modules has graphile-worker. GRAPHILE_URL: the database.
const { createRequire } = require('node:module');
const { runMigrations, run, Logger } = createRequire(process.cwd() + '/x.js')('graphile-worker');
const { Pool } = createRequire(process.cwd() + '/node_modules/graphile-worker/x.js')('pg');

async function main() {
  const connectionString = process.env.GRAPHILE_URL;
  const tasks = Number(process.env.GRAPHILE_TASKS), workers = Number(process.env.GRAPHILE_WORKERS);
  const logger = new Logger(() => () => {});
  const pool = new Pool({ connectionString, max: workers + 2 });
  await runMigrations({ pgPool: pool, logger });
  await pool.query('DELETE FROM graphile_worker._private_jobs');
  await pool.query("SELECT count(graphile_worker.add_job('noop', '{}'::json)) FROM generate_series(1, $1)", [tasks]);
  await pool.query('VACUUM ANALYZE graphile_worker._private_jobs');
  let done = 0, began, finish;
  const all = new Promise((resolve) => { finish = resolve; });
  const noop = async () => {
    began ??= process.hrtime.bigint();
    if (++done === tasks) finish();
  };
  const runner = await run({ pgPool: pool, concurrency: workers, pollInterval: 10, noHandleSignals: true, logger, taskList: { noop } });
  await all;
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  await runner.stop();
  await pool.end();
  console.log((tasks / seconds).toFixed(1));
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});

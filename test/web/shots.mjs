// Pictures of the board at three widths, light and dark, in build/web-shots: for people to look at.
import fs from "node:fs";
import { serve, stop, start, open, live, test, finish, card, ok } from "./kit.mjs";
import { scene, tokenOf } from "./scene.mjs";

const shots = process.env.WEB_SHOTS;
fs.mkdirSync(shots, { recursive: true });
scene();
const url = await serve(),
	admin = tokenOf("admin");
await start();
for (const [width, height] of [
	[390, 844],
	[1024, 768],
	[1440, 900],
])
	for (const colorScheme of ["light", "dark"])
		await test(`pictures at ${width} px, ${colorScheme}`, async () => {
			const shoot = async name => {
				const file = `${shots}/${name}-${width}-${colorScheme}.png`;
				await page.screenshot({ path: file });
				ok(fs.statSync(file).size > 5000, "the picture is empty");
			};
			const page = await open(`${url}/#token=${admin}`, { viewport: { width, height }, colorScheme });
			await live(page);
			await card(page, "t1").waitFor();
			await shoot("board");
			await page.evaluate(() => {
				location.hash = "task=t7";
			});
			await page.waitForSelector("#detail .graph");
			await shoot("detail");
			await page.keyboard.press("c");
			await page.fill("dialog textarea", "Looks **good**, but the error path has no test.");
			await shoot("dialog");
			await page.keyboard.press("Escape");
			await page.keyboard.press("Escape");
			await page.waitForSelector("#detail", { state: "hidden" });
			for (const view of ["agents", "charts"]) {
				await page.click(`#views [data-view="${view}"]`);
				await page.waitForSelector(`#${view} section`);
				await shoot(view);
			}
			await page.evaluate(() => {
				location.hash = "";
			});
			await page.fill("#q", "nothing has this text");
			await page.waitForFunction(() => document.querySelectorAll(".card").length === 0);
			await shoot("none");
			await page.click("#clear");
			await page.locator("#q").blur();
			await page.keyboard.press("n");
			await page.waitForSelector("dialog form");
			await shoot("new");
			await page.keyboard.press("Escape");
			await card(page, "t1").waitFor();
			await page.keyboard.press("?");
			await shoot("help");
			await page.keyboard.press("Escape");
			await stop();
			await page.waitForSelector("#link[data-live=no]");
			await shoot("away");
			await serve(new URL(url).port);
			await live(page);
			await page.context().close();
		});
await finish();

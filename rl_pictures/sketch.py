"""A MuJoCo robot drawn with numpy and Pillow alone, for machines without OpenGL."""

import numpy as np

SKY, HAZE = (206, 213, 224), (119, 130, 138)
TILES = ((119, 130, 138), (148, 159, 169))
BODY, ROOT, EDGE, SHADOW = (217, 158, 84), (201, 138, 68), (107, 74, 34), (69, 78, 86)
ELEVATION = np.radians(14)
FOCAL = 1.6  # of the picture's height: a lens a little longer than MuJoCo's
VISIBLE_GROUPS = 3  # MuJoCo draws the geom groups 0, 1 and 2 unless told otherwise
PLANE, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX = 0, 2, 3, 4, 5, 6
FINE = 2  # drawn twice as large and reduced, which smooths the edges


class Sketcher:
    """sketcher(qpos) -> uint8 [height, width, 3]. Its camera stands beside the robot and moves along with it."""

    def __init__(self, model, size):
        import mujoco

        self._mujoco = mujoco
        self._model = model
        self._data = mujoco.MjData(model)
        self._size = size
        drawn = (model.geom_type != PLANE) & (model.geom_group < VISIBLE_GROUPS) & _opaque(model)
        self._geoms = np.flatnonzero(drawn)
        mujoco.mj_kinematics(model, self._data)
        centre = self._data.geom_xpos[self._geoms]
        reach = np.linalg.norm(centre - self._target(), axis=1) + model.geom_rbound[self._geoms]
        self._distance = 3.6 * (reach.max() if len(reach) else 1.0)

    def close(self):
        """Nothing to free."""

    def _target(self):
        """What the camera looks at: the place of the first body, at a height that does not bob with it."""
        body = min(1, self._model.nbody - 1)
        home = self._model.body_pos[body]
        return np.array([self._data.xpos[body, 0], self._data.xpos[body, 1], 0.8 * max(home[2], 0.25)])

    def __call__(self, qpos):
        from PIL import Image, ImageDraw

        self._data.qpos[:] = qpos
        self._mujoco.mj_kinematics(self._model, self._data)
        width, height = (FINE * n for n in self._size)
        camera = Camera(self._target(), self._distance, width, height)
        image = Image.new("RGB", (width, height), SKY)
        draw = ImageDraw.Draw(image)
        _draw_floor(draw, camera)
        solids = self._solids()
        for ends, radius, _ in solids:
            flat = np.array(ends)
            flat[:, 2] = 0.0
            _draw_solid(draw, camera, flat, radius, SHADOW, None, squash=np.sin(ELEVATION))
        for ends, radius, colour in sorted(solids, key=lambda solid: -camera.depth(np.mean(solid[0], axis=0))):
            _draw_solid(draw, camera, ends, radius, colour, EDGE)
        return np.asarray(image.reduce(FINE))

    def _solids(self):
        """Every geom as (its two ends [2, 3], radius, colour): a rod with round ends, as most parts of robots are."""
        model, data, solids = self._model, self._data, []
        for geom in self._geoms:
            size, axis = model.geom_size[geom], data.geom_xmat[geom].reshape(3, 3)
            kind = model.geom_type[geom]
            if kind in (CAPSULE, CYLINDER):
                radius, half = size[0], size[1] * axis[:, 2]
            elif kind in (BOX, ELLIPSOID):
                longest = int(np.argmax(size))
                radius = np.sort(size)[1]
                half = max(size[longest] - radius, 0.0) * axis[:, longest]
            else:
                radius, half = (size[0] if kind == SPHERE else model.geom_rbound[geom]), np.zeros(3)
            colour = ROOT if model.geom_bodyid[geom] <= 1 else BODY
            centre = data.geom_xpos[geom]
            solids.append((np.stack([centre - half, centre + half]), float(radius), colour))
        return solids


class Camera:
    """A pinhole that looks along +y and a little down, at `target` from `distance` away."""

    def __init__(self, target, distance, width, height):
        sine, cosine = np.sin(ELEVATION), np.cos(ELEVATION)
        self.forward = np.array([0.0, cosine, -sine])
        self.up = np.array([0.0, sine, cosine])
        self.place = target - distance * self.forward
        self.target = target
        self.distance = distance
        self.focal = FOCAL * height
        self.width, self.height = width, height

    def depth(self, points):
        return (points - self.place) @ self.forward

    def pixels(self, points):
        """[..., 3] -> ([..., 2] places in the picture, [...] pixels per metre there)."""
        offset = points - self.place
        scale = self.focal / np.maximum(offset @ self.forward, 1e-3)
        x = self.width / 2 + offset[..., 0] * scale
        y = self.height / 2 - (offset @ self.up) * scale
        return np.stack([x, y], axis=-1), scale


def _opaque(model):
    material = model.geom_matid
    alpha = model.geom_rgba[:, 3].copy()
    if model.nmat:
        alpha = np.where(material >= 0, model.mat_rgba[np.maximum(material, 0), 3], alpha)
    return alpha > 0.1


def _draw_floor(draw, camera, tiles=6):
    """Chequered ground that stays where it is in the world, so that one sees the robot move."""
    tile = camera.distance / 6
    nearest = camera.place[1] + camera.place[2] / np.tan(ELEVATION + np.arctan(0.5 / FOCAL)) - tile
    column, row = int(np.floor(camera.target[0] / tile)), int(np.floor(nearest / tile))
    farthest = row + 4 * tiles
    horizon = camera.height / 2 - camera.focal * np.tan(ELEVATION)
    draw.rectangle((0, horizon, camera.width, camera.height), fill=HAZE)
    x, y = np.meshgrid(np.arange(column - 2 * tiles, column + 2 * tiles + 1), np.arange(row, farthest + 1))
    near_enough = (y * tile - camera.place[1]) > 0.05 * camera.distance
    corners, _ = camera.pixels(np.stack([x * tile, y * tile, np.zeros(x.shape)], axis=-1))
    corners = corners.tolist()
    for j in range(x.shape[0] - 1):
        if not near_enough[j, 0]:
            continue
        for i in range((x[j, 0] + y[j, 0]) % 2, x.shape[1] - 1, 2):
            corner = corners[j][i], corners[j][i + 1], corners[j + 1][i + 1], corners[j + 1][i]
            across = [place[0] for place in corner]
            if max(across) > 0 and min(across) < camera.width:
                draw.polygon([tuple(place) for place in corner], fill=TILES[1])


def _draw_solid(draw, camera, ends, radius, colour, edge, squash=1.0):
    """A rod with round ends, as two discs and what lies between them; `squash` flattens the discs of a shadow."""
    places, scales = camera.pixels(ends)
    radii = radius * scales
    along = places[1] - places[0]
    length = np.hypot(*along)
    across = np.array([-along[1], along[0]]) / length if length > 1e-9 else np.zeros(2)
    across[1] *= squash
    for extra, fill in ((1.0 * FINE, edge), (0.0, colour)):
        if fill is None:
            continue
        for (x, y), r in zip(places.tolist(), (radii + extra).tolist()):
            draw.ellipse((x - r, y - r * squash, x + r, y + r * squash), fill=fill)
        if length > 1e-9:
            side = across * (radii + extra)[:, None]
            quad = np.concatenate([places + side, (places - side)[::-1]])
            draw.polygon([tuple(place) for place in quad.tolist()], fill=fill)

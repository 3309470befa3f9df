"""Ordinary words for simulated texts: longer than four letters, no two with the same stem."""

WORDS = tuple(
    """
    acorn album alley amber anchor angle apple apron arrow atlas attic autumn bacon badge
    bagel bamboo banjo barrel basil basket beach beacon beard bench berry birch blanket
    blossom board border bottle brick bridge broom brush bucket bundle butter button cabin
    cable cactus camel candle canvas canyon carbon cargo carpet carrot castle cavern cedar
    cello chain chalk chapel cheese cherry chest chimney cinnamon circle citrus clarinet
    cliff clock clover coast cobalt coconut comet compass copper coral cotton cradle crane
    crater cricket crystal cupboard curtain cushion dagger daisy delta desert diamond dolphin
    donkey dragon drawer drummer eagle easel elbow elephant emerald engine falcon feather
    fence fernery ferry fiddle field finger flame flute forest fossil fountain garden garlic
    ginger giraffe glacier globe goblet grape granite gravel guitar hammer harbour harvest
    hazel hedge heron hollow honey horizon hotel island ivory jacket jasmine jelly jungle
    kennel kettle kitten ladder lagoon lantern lemon lettuce lizard locket magnet mango
    marble market meadow melon mirror monkey mountain muffin mustard napkin needle nickel
    nutmeg ocean olive onion orbit orchard otter oyster paddle palace panther paper parcel
    parrot pebble pencil pepper piano pigeon pillow pinecone planet plaster pocket pollen
    potato prairie puddle pumpkin puppet quarry quilt rabbit radish raven ribbon river robin
    rocket saddle saffron salmon sandal satin scarf shadow shell shovel silver spider spinach
    squirrel statue stream sugar summer sunset table tablet teapot temple thimble thunder
    tiger timber tomato tractor trumpet tulip tunnel turnip turtle umbrella valley vanilla
    velvet village vinegar violin wagon walnut water whale wheat willow window winter yogurt
    zebra
    """.split()
)
